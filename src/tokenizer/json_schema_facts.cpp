#include "tokenizer/json_schema_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/gbnf.h"

namespace hocket {
namespace {

constexpr int kMaxReferences = 32;        // one after the other
constexpr int kMaxFiniteSteps = 200'000;  // beyond, a schema counts as too intertwined

// Follows references; nullptr when they do not end.
Json* resolved(Json& root, Json& schema) {
  Json* at = &schema;
  for (int i = 0; i < kMaxReferences && at; ++i) {
    if (!at->is_object() || !at->contains("$ref")) return at;
    at = find_reference(root, (*at)["$ref"]);
  }
  return nullptr;
}

std::optional<std::vector<Json>> fixed_values(const Json& schema) {
  if (!schema.is_object()) return std::nullopt;
  if (const auto found = schema.find("const"); found != schema.end()) return std::vector<Json>{*found};
  if (const auto found = schema.find("enum"); found != schema.end() && found->is_array())
    return std::vector<Json>(found->begin(), found->end());
  return std::nullopt;
}

std::vector<std::string> type_names(const Json& schema) {
  std::vector<std::string> names;
  const auto type = schema.find("type");
  if (type == schema.end()) {
    if (schema.contains("properties")) names.emplace_back("object");
    return names;
  }
  for (const Json& name : type->is_array() ? *type : Json::array({*type})) {
    if (name.is_string()) names.push_back(name.get<std::string>() == "integer" ? "number" : name.get<std::string>());
  }
  return names;
}

bool has_no_common_value(const std::vector<Json>& a, const std::vector<Json>& b) {
  return std::none_of(a.begin(), a.end(), [&](const Json& v) { return std::find(b.begin(), b.end(), v) != b.end(); });
}

bool requires_property(const Json& schema, const std::string& name) {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::find(required->begin(), required->end(), Json(name)) != required->end();
}

// All of `low` below all of `high`.
bool numbers_apart(const Json& low, const Json& high) {
  const auto bound = [](const Json& s, const char* keyword) { return s.contains(keyword) && s[keyword].is_number(); };
  for (const char* top : {"maximum", "exclusiveMaximum"}) {
    for (const char* bottom : {"minimum", "exclusiveMinimum"}) {
      if (!bound(low, top) || !bound(high, bottom)) continue;
      const bool touching_is_apart = std::string_view(top) != "maximum" || std::string_view(bottom) != "minimum";
      if (low[top] < high[bottom] || (touching_is_apart && low[top] == high[bottom])) return true;
    }
  }
  return false;
}

bool requires_what_is_forbidden(const Json& one, const Json& closed) {
  const auto required = one.find("required"), more = closed.find("additionalProperties");
  if (required == one.end() || !required->is_array() || more == closed.end() || *more != false) return false;
  if (closed.contains("patternProperties")) return false;
  const Json properties = closed.value("properties", Json::object());
  return std::any_of(required->begin(), required->end(), [&](const Json& name) {
    return name.is_string() && !properties.contains(name.get<std::string>());
  });
}

class FiniteInstance {
 public:
  explicit FiniteInstance(Json& root) : root_(root) {}

  bool check(Json& schema) {
    if (!schema.is_object()) return true;  // true, or an error that is found elsewhere
    if (++n_steps_ > kMaxFiniteSteps) return false;
    const auto [known, is_new] = state_.emplace(&schema, State::kOpen);
    if (!is_new) return known->second == State::kFinite;
    const bool finite = look(schema);
    if (finite) {
      state_[&schema] = State::kFinite;
    } else {
      state_.erase(&schema);  // it may have failed only because something above is still open
    }
    return finite;
  }

 private:
  enum class State { kOpen, kFinite };

  bool look(Json& schema) {
    if (schema.contains("$ref")) {
      Json* target = find_reference(root_, schema["$ref"]);
      return !target || check(*target);
    }
    for (const char* keyword : {"anyOf", "oneOf"}) {
      const auto options = schema.find(keyword);
      if (options == schema.end() || !options->is_array()) continue;
      return std::any_of(options->begin(), options->end(), [&](Json& option) { return check(option); });
    }
    if (const auto parts = schema.find("allOf"); parts != schema.end() && parts->is_array())
      return std::all_of(parts->begin(), parts->end(), [&](Json& part) { return check(part); });
    const std::vector<std::string> types = type_names(schema);
    if (types.size() > 1) return true;  // another type than object or array is finite at once; two of them are unusual
    if (const auto properties = schema.find("properties"); properties != schema.end() && properties->is_object()) {
      for (auto& [name, property] : properties->items()) {
        if (requires_property(schema, name) && !check(property)) return false;
      }
    }
    if (const auto min = schema.find("minProperties"); min != schema.end() && *min != 0) {
      for (const char* keyword : {"properties", "patternProperties"}) {
        const auto found = schema.find(keyword);
        if (found == schema.end() || !found->is_object()) continue;
        for (auto& [name, property] : found->items()) {
          if (!check(property)) return false;
        }
      }
      if (schema.contains("additionalProperties") && !check(schema["additionalProperties"])) return false;
    }
    const auto min_items = schema.find("minItems");
    if (min_items == schema.end() || !min_items->is_number_unsigned() || min_items->get<uint64_t>() == 0) return true;
    const auto items = schema.find("items");
    return items == schema.end() || check(*items);
  }

  Json& root_;
  std::map<const Json*, State> state_;
  int n_steps_ = 0;
};

}  // namespace

Json* find_reference(Json& root, const Json& reference) {
  if (!reference.is_string()) return nullptr;
  const std::string& uri = reference.get_ref<const std::string&>();
  if (uri == "#") return &root;
  // A percent sign would need URI decoding, which XGrammar does not do.
  if (!uri.starts_with("#/") || uri.find('%') != std::string::npos) return nullptr;
  Json* at = &root;
  std::size_t begin = 2;
  while (true) {
    const std::size_t end = std::min(uri.find('/', begin), uri.size());
    std::string name;
    for (std::size_t i = begin; i < end; ++i) {
      if (uri[i] != '~') {
        name += uri[i];
      } else if (i + 1 < end && (uri[i + 1] == '0' || uri[i + 1] == '1')) {
        name += uri[++i] == '0' ? '~' : '/';
      } else {
        return nullptr;
      }
    }
    if (!at->is_object()) return nullptr;  // parts of arrays cannot be named: XGrammar would not find them
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
    if (end == uri.size()) return at;
    begin = end + 1;
  }
}

bool value_has_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

bool provably_disjoint(Json& root, Json& a, Json& b) {
  Json* x = resolved(root, a);
  Json* y = resolved(root, b);
  if (!x || !y || !x->is_object() || !y->is_object()) return false;
  const auto x_values = fixed_values(*x), y_values = fixed_values(*y);
  if (x_values && y_values) return has_no_common_value(*x_values, *y_values);
  const auto excludes = [](const std::vector<Json>& values, const Json& schema) {
    const auto types = type_names(schema);
    return !types.empty() && std::none_of(values.begin(), values.end(), [&](const Json& value) {
      return std::any_of(types.begin(), types.end(), [&](auto& type) { return value_has_type(value, type); });
    });
  };
  if (x_values) return excludes(*x_values, *y);
  if (y_values) return excludes(*y_values, *x);

  const auto x_types = type_names(*x), y_types = type_names(*y);
  if (x_types.empty() || y_types.empty()) return false;
  if (std::none_of(x_types.begin(), x_types.end(),
                   [&](auto& t) { return std::find(y_types.begin(), y_types.end(), t) != y_types.end(); }))
    return true;
  if (x_types == std::vector<std::string>{"number"} && y_types == x_types)
    return numbers_apart(*x, *y) || numbers_apart(*y, *x);
  if (x_types != std::vector<std::string>{"object"} || y_types != x_types) return false;
  if (requires_what_is_forbidden(*x, *y) || requires_what_is_forbidden(*y, *x)) return true;
  if (!x->contains("properties") || !y->contains("properties") || !(*y)["properties"].is_object()) return false;
  for (auto& [name, property] : (*x)["properties"].items()) {
    if (!requires_property(*x, name) || !requires_property(*y, name) || !(*y)["properties"].contains(name)) continue;
    Json* p = resolved(root, property);
    Json* q = resolved(root, (*y)["properties"][name]);
    if (!p || !q) continue;
    const auto p_values = fixed_values(*p), q_values = fixed_values(*q);
    if (p_values && q_values && has_no_common_value(*p_values, *q_values)) return true;
  }
  return false;
}

bool has_finite_instance(Json& root) {
  return FiniteInstance(root).check(root);
}

Result<void> check_pattern(std::string_view pattern) {
  const auto invalid = [](std::string message) { return Error(ErrorCode::kInvalid, std::move(message)); };
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const std::string_view rest = pattern.substr(i);
    if (c == '\\') {
      if (i + 1 == pattern.size()) return invalid("a backslash at the end");
      const char next = pattern[++i];
      if (next >= '1' && next <= '9') return invalid("back references are not supported");
      if (next == 'b' || next == 'B' || next == 'p' || next == 'P' || next == 'k' || next == 'A' || next == 'z' ||
          next == 'Z') {
        return invalid(fmt::format("\\{} is not supported", next));
      }
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (pattern.substr(i + 1).starts_with("^]") || pattern.substr(i + 1).starts_with("]"))
        return invalid("an empty character class");
      if (pattern.substr(i + 1).starts_with("^")) ++i;
    } else if (c == '(' && rest.starts_with("(?") && !rest.starts_with("(?:")) {
      return invalid("groups that begin with \"(?\" are not supported, except \"(?:\"");
    } else if (c == '^' && i != 0) {
      return invalid("\"^\" is only supported at the beginning");
    } else if (c == '$' && i + 1 != pattern.size()) {
      return invalid("\"$\" is only supported at the end");
    } else if (c == '{') {
      int value = 0;
      for (std::size_t j = i + 1; j < pattern.size() && pattern[j] != '}'; ++j) {
        value = pattern[j] >= '0' && pattern[j] <= '9' ? std::min(value * 10 + (pattern[j] - '0'), 1'000'000) : 0;
        if (value > kMaxGbnfRepeat) return invalid(fmt::format("repetitions above {} are not allowed", kMaxGbnfRepeat));
      }
    }
  }
  if (in_class) return invalid("a character class is not closed");
  return {};
}

}  // namespace hocket
