#include "tokenizer/json_schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "tokenizer/json_schema_facts.h"
#include "tokenizer/json_schema_merge.h"

namespace hocket {
namespace {

using Names = std::initializer_list<std::string_view>;

constexpr std::string_view kAnnotations[] = {"title",    "description", "default",  "examples",
                                             "$schema",  "$id",         "$comment", "deprecated",
                                             "readOnly", "writeOnly",   "$defs",    "definitions"};
constexpr std::string_view kFormats[] = {"date",     "time", "date-time", "duration", "email",
                                         "hostname", "ipv4", "ipv6",      "uuid",     "uri"};

// XGrammar's own rule for this format takes numbers with leading zeros.
constexpr const char* kIpv4Pattern =
    "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$";

constexpr int kMaxMultiple = 100;    // as many rules for each digit
constexpr int kMaxMultiples = 1000;  // written out

struct TypeKeywords {
  std::string_view type;
  std::vector<std::string_view> keywords;
};
const TypeKeywords kTypes[] = {
    {"object",
     {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
      "maxProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
    {"boolean", {}},
    {"null", {}},
};

bool is_annotation(std::string_view name) {
  return std::find(std::begin(kAnnotations), std::end(kAnnotations), name) != std::end(kAnnotations) ||
         name.starts_with("x-");
}

std::string child(std::string_view path, std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return fmt::format("{}/{}", path, escaped);
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

Error refuse(std::string_view path, std::string_view what) {
  return Error(ErrorCode::kInvalid, fmt::format("schema {}: {}", path.empty() ? "(root)" : path, what));
}

class SchemaChecker {
 public:
  SchemaChecker(Json& root, SchemaNotation notation) : root_(root), notation_(notation) {}

  Result<void> check() {
    TRY(merge_all_of(root_));
    TRY(check_schema(root_, ""));
    for (const auto& [node, key] : additions_) (*node)[key] = true;
    for (Json* node : one_of_) {
      Json options = std::move((*node)["oneOf"]);
      node->erase("oneOf");
      (*node)["anyOf"] = std::move(options);
    }
    for (Json* node : multiples_) write_multiples(*node);
    for (Json* node : ipv4_) {
      node->erase("format");
      (*node)["pattern"] = kIpv4Pattern;
    }
    return {};
  }

 private:
  // Refuses what is neither an annotation nor named.
  Result<void> only(const Json& node, const std::string& path, const std::vector<std::string_view>& names,
                    std::string_view why) {
    for (const auto& [key, value] : node.items()) {
      if (is_annotation(key) || std::find(names.begin(), names.end(), key) != names.end()) continue;
      return refuse(path, fmt::format("the keyword \"{}\" is not supported{}", key, why));
    }
    return {};
  }

  Result<void> check_schema(Json& node, const std::string& path) {
    if (node.is_boolean()) {
      if (!node.get<bool>()) return refuse(path, "the schema false accepts nothing");
      return {};
    }
    if (!node.is_object()) return refuse(path, "a schema must be an object");
    if (!visited_.insert(&node).second) return {};
    if (node.contains("$ref")) return check_reference(node, path);
    for (const char* keyword : {"const", "enum"}) {
      if (node.contains(keyword)) return check_values(node, path, keyword);
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
      if (node.contains(keyword)) return check_options(node, path, keyword);
    }
    return check_typed(node, path);
  }

  Result<void> check_reference(Json& node, const std::string& path) {
    TRY(only(node, path, {"$ref"}, " beside \"$ref\""));
    Json* target = find_reference(root_, node["$ref"]);
    if (!target) return refuse(path, "\"$ref\" must be \"#\" or \"#/…\" and name a part of this schema");
    return check_schema(*target, node["$ref"].get<std::string>().substr(1));
  }

  Result<void> check_values(const Json& node, const std::string& path, std::string_view keyword) {
    TRY(only(node, path, {keyword, "type"}, fmt::format(" beside \"{}\"", keyword)));
    const Json& found = *node.find(std::string(keyword));
    const Json values = keyword == "const" ? Json::array({found}) : found;
    if (!values.is_array() || values.empty()) return refuse(path, "\"enum\" must be an array with at least one value");
    for (const Json& value : values) {
      if (notation_ == SchemaNotation::kGemma &&
          (value.is_structured() || dump_json(value).find("<|") != std::string::npos))
        return refuse(path,
                      fmt::format("{} cannot be written in this model's notation of arguments", dump_json(value)));
    }
    if (!node.contains("type")) return {};
    TRY_ASSIGN(const std::vector<std::string> types, types_of(node, path));
    for (const Json& value : values) {
      if (std::none_of(types.begin(), types.end(), [&](auto& type) { return value_has_type(value, type); }))
        return refuse(path, fmt::format("a value of \"{}\" does not have the \"type\"", keyword));
    }
    return {};
  }

  Result<void> check_options(Json& node, const std::string& path, const char* keyword) {
    TRY(only(node, path, {keyword}, fmt::format(" beside \"{}\"", keyword)));
    Json& options = node[keyword];
    if (!options.is_array() || options.empty())
      return refuse(path, fmt::format("\"{}\" must be an array with at least one schema", keyword));
    if (keyword == std::string_view("allOf") && options.size() > 1)
      return refuse(path, "\"allOf\" with more than one schema is not supported here");
    for (std::size_t i = 0; i < options.size(); ++i)
      TRY(check_schema(options[i], fmt::format("{}/{}/{}", path, keyword, i)));
    if (keyword != std::string_view("oneOf")) return {};
    for (std::size_t i = 0; i < options.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!provably_disjoint(root_, options[j], options[i])) {
          return refuse(path,
                        fmt::format("options {} and {} of \"oneOf\" may both match; \"anyOf\" is supported", j, i));
        }
      }
    }
    one_of_.push_back(&node);
    return {};
  }

  Result<std::vector<std::string>> types_of(const Json& node, const std::string& path) {
    const auto type = node.find("type");
    std::vector<std::string> types;
    if (type == node.end()) {
      // As everywhere in practice: keywords of one type say which type is meant.
      for (const TypeKeywords& row : {kTypes[0], kTypes[1]}) {
        for (const std::string_view keyword : row.keywords) {
          if (node.contains(std::string(keyword))) return std::vector<std::string>{std::string(row.type)};
        }
      }
      return types;
    }
    const Json list = type->is_array() ? *type : Json::array({*type});
    if (list.empty()) return refuse(path, "\"type\" is empty");
    for (const Json& name : list) {
      const auto known = [&](const TypeKeywords& row) {
        return name.is_string() && name.get<std::string>() == row.type;
      };
      if (std::none_of(std::begin(kTypes), std::end(kTypes), known))
        return refuse(path, fmt::format("\"type\" {} is not known", dump_json(name)));
      types.push_back(name.get<std::string>());
    }
    return types;
  }

  Result<void> check_typed(Json& node, const std::string& path) {
    TRY_ASSIGN(const std::vector<std::string> types, types_of(node, path));
    std::vector<std::string_view> allowed{"type"};
    std::string for_types;
    for (const std::string& type : types) {
      for (const TypeKeywords& row : kTypes) {
        if (row.type == type) allowed.insert(allowed.end(), row.keywords.begin(), row.keywords.end());
      }
      for_types += fmt::format("{}{}", for_types.empty() ? " for the type " : " or ", type);
    }
    TRY(only(node, path, allowed, types.empty() ? " without a \"type\"" : for_types));
    for (const std::string& type : types) {
      if (type == "object") TRY(check_object(node, path));
      if (type == "array") TRY(check_array(node, path));
      if (type == "string") TRY(check_string(node, path));
      if (type == "integer" || type == "number") TRY(check_number(node, path));
    }
    return {};
  }

  Result<void> check_object(Json& node, const std::string& path) {
    const auto properties = node.find("properties");
    if (properties != node.end()) {
      if (!properties->is_object()) return refuse(path, "\"properties\" must be an object");
      for (auto& [name, schema] : properties->items()) {
        if (notation_ == SchemaNotation::kGemma && !is_identifier(name))
          return refuse(path, fmt::format("the name {} cannot be written in this model's notation of arguments",
                                          dump_json(name)));
        TRY(check_schema(schema, child(child(path, "properties"), name)));
      }
    }
    if (const auto required = node.find("required"); required != node.end()) {
      if (!required->is_array()) return refuse(path, "\"required\" must be an array of names");
      for (const Json& name : *required) {
        if (!name.is_string()) return refuse(path, "\"required\" must be an array of names");
        if (properties == node.end() || !properties->contains(name.get<std::string>()))
          return refuse(path, fmt::format("\"required\" names {}, which \"properties\" lacks", dump_json(name)));
      }
    }
    if (const auto more = node.find("additionalProperties"); more != node.end()) {
      if (!more->is_boolean()) TRY(check_schema(*more, child(path, "additionalProperties")));
    } else if (properties == node.end() && !node.contains("patternProperties")) {
      additions_.emplace_back(&node, "additionalProperties");
    }
    TRY(check_patterns(node, path));
    TRY(check_names(node, path));
    return check_property_counts(node, path);
  }

  // A name that two rules are for would have to follow both; what a pattern matches is not looked into.
  Result<void> check_patterns(Json& node, const std::string& path) {
    const auto patterns = node.find("patternProperties");
    if (patterns == node.end()) return {};
    if (notation_ == SchemaNotation::kGemma)
      return refuse(path, "\"patternProperties\" is not supported in this model's notation of arguments");
    if (!patterns->is_object() || patterns->size() != 1)
      return refuse(path, "\"patternProperties\" with other than one pattern is not supported");
    if (node.contains("properties") || node.contains("propertyNames"))
      return refuse(path, "\"patternProperties\" beside \"properties\" or \"propertyNames\" is not supported");
    if (const auto more = node.find("additionalProperties"); more != node.end() && *more != false)
      return refuse(path,
                    "\"patternProperties\" beside \"additionalProperties\" is not supported, unless that is false");
    for (auto& [pattern, schema] : patterns->items()) {
      if (auto checked = check_pattern(pattern); !checked)
        return refuse(path, fmt::format("\"patternProperties\": {}", checked.error().message));
      TRY(check_schema(schema, child(child(path, "patternProperties"), pattern)));
    }
    return {};
  }

  Result<void> check_names(Json& node, const std::string& path) {
    const auto names = node.find("propertyNames");
    if (names == node.end()) return {};
    const std::string at = child(path, "propertyNames");
    if (notation_ == SchemaNotation::kGemma)
      return refuse(path, "\"propertyNames\" is not supported in this model's notation of arguments");
    if (node.contains("properties")) return refuse(path, "\"propertyNames\" beside \"properties\" is not supported");
    if (!names->is_object() || names->empty()) return refuse(at, "\"propertyNames\" must be a schema of strings");
    TRY(only(*names, at, {"type", "minLength", "maxLength", "pattern", "enum"}, " in \"propertyNames\""));
    if (names->value("type", Json("string")) != "string")
      return refuse(at, "\"propertyNames\" must be of the type string");
    if (!names->contains("enum")) {
      TRY(check_string(*names, at));
    } else if (names->size() - names->count("type") != 1 || !(*names)["enum"].is_array() || (*names)["enum"].empty() ||
               !std::all_of((*names)["enum"].begin(), (*names)["enum"].end(),
                            [](const Json& name) { return name.is_string(); })) {
      return refuse(at, "\"enum\" must be an array of strings, with nothing beside it");
    }
    if (!names->contains("enum")) (*names)["type"] = "string";
    return {};
  }

  // A free name may come twice, and two of the same are one property.
  Result<void> check_property_counts(Json& node, const std::string& path) {
    TRY(check_counts(node, path, "minProperties", "maxProperties"));
    const auto n_required = node.value("required", Json::array()).size();
    const auto min = node.value("minProperties", std::size_t{0}), max = node.value("maxProperties", SIZE_MAX);
    if (max < std::max(min, n_required))
      return refuse(path, "\"maxProperties\" is less than \"minProperties\" or what is required");
    const bool closed = node.contains("properties") ? node.value("additionalProperties", Json(false)) == false
                                                    : node.value("additionalProperties", Json(true)) == false &&
                                                          !node.contains("patternProperties");
    if (closed && min > node.value("properties", Json::object()).size())
      return refuse(path, "\"minProperties\" is more than there are properties");
    if (!closed && min > std::max<std::size_t>(n_required, 1))
      return refuse(path, "\"minProperties\" above 1 and the required ones is not supported where names are free");
    return {};
  }

  Result<void> check_array(Json& node, const std::string& path) {
    TRY(check_counts(node, path, "minItems", "maxItems"));
    std::size_t n_prefix = 0;
    const auto prefix = node.find("prefixItems");
    if (prefix != node.end()) {
      if (!prefix->is_array()) return refuse(path, "\"prefixItems\" must be an array of schemas");
      n_prefix = prefix->size();
      for (std::size_t i = 0; i < n_prefix; ++i) {
        if (!(*prefix)[i].is_object()) return refuse(path, "\"prefixItems\" must be an array of objects");
        TRY(check_schema((*prefix)[i], fmt::format("{}/prefixItems/{}", path, i)));
      }
    }
    if (const auto items = node.find("items"); items != node.end()) {
      if (!items->is_boolean()) TRY(check_schema(*items, child(path, "items")));
    } else if (prefix == node.end() || node.value("minItems", std::size_t{0}) > n_prefix) {
      additions_.emplace_back(&node, "items");
    }
    return {};
  }

  Result<void> check_string(Json& node, const std::string& path) {
    TRY(check_counts(node, path, "minLength", "maxLength"));
    if (notation_ == SchemaNotation::kGemma) {
      for (const char* keyword : {"minLength", "maxLength", "pattern", "format"}) {
        if (node.contains(keyword))
          return refuse(path, fmt::format("\"{}\" is not supported in this model's notation of arguments", keyword));
      }
    }
    const bool has_length = node.contains("minLength") || node.contains("maxLength");
    for (const char* keyword : {"pattern", "format"}) {
      if (!node.contains(keyword)) continue;
      if (!node[keyword].is_string()) return refuse(path, fmt::format("\"{}\" must be a string", keyword));
      if (has_length) return refuse(path, fmt::format("\"{}\" together with a length is not supported", keyword));
    }
    if (node.contains("pattern") && node.contains("format"))
      return refuse(path, "\"pattern\" together with \"format\" is not supported");
    if (const auto format = node.find("format"); format != node.end()) {
      const std::string name = format->get<std::string>();
      if (std::find(std::begin(kFormats), std::end(kFormats), name) == std::end(kFormats))
        return refuse(path, fmt::format("\"format\" \"{}\" is not supported", name));
      if (name == "ipv4") ipv4_.push_back(&node);
    }
    if (const auto pattern = node.find("pattern"); pattern != node.end()) {
      if (auto checked = check_pattern(pattern->get<std::string>()); !checked)
        return refuse(path, fmt::format("\"pattern\": {}", checked.error().message));
    }
    return {};
  }

  Result<void> check_number(Json& node, const std::string& path) {
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (node.contains(keyword) && !node[keyword].is_number())
        return refuse(path, fmt::format("\"{}\" must be a number", keyword));
    }
    return check_multiple(node, path);
  }

  Result<void> check_multiple(Json& node, const std::string& path) {
    const auto found = node.find("multipleOf");
    if (found == node.end()) return {};
    if (!found->is_number_unsigned() || *found < 1 || *found > 1'000'000'000)
      return refuse(path, "\"multipleOf\" must be an integer from 1 to 1000000000");
    if (node["type"] != "integer") return refuse(path, "\"multipleOf\" is only supported for the type integer alone");
    bool bounded = false;
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      bounded = bounded || node.contains(keyword);
    if (!bounded && *found > kMaxMultiple)
      return refuse(path, fmt::format("\"multipleOf\" above {} is only supported with bounds", kMaxMultiple));
    if (!bounded) return {};
    if (auto values = multiples(node); values.empty())
      return refuse(path,
                    fmt::format("\"multipleOf\" with bounds is only supported for up to {} values", kMaxMultiples));
    multiples_.push_back(&node);
    return {};
  }

  // The values of a bounded integer with multipleOf; none when there are too many.
  static std::vector<Json> multiples(const Json& node) {
    const double none = std::numeric_limits<double>::infinity();
    const auto bound = [&](const char* keyword, double otherwise) { return node.value(keyword, otherwise); };
    const double step = node["multipleOf"].get<double>();
    double low = std::ceil(bound("minimum", -none) / step), high = std::floor(bound("maximum", none) / step);
    if (node.contains("exclusiveMinimum")) low = std::max(low, std::floor(bound("exclusiveMinimum", -none) / step) + 1);
    if (node.contains("exclusiveMaximum")) high = std::min(high, std::ceil(bound("exclusiveMaximum", none) / step) - 1);
    std::vector<Json> out;
    // Beyond 2⁵³ a double is not exact.
    if (!(std::abs(low * step) < 9e15 && std::abs(high * step) < 9e15) || high - low >= kMaxMultiples) return out;
    for (double i = low; i <= high; ++i) out.emplace_back(static_cast<int64_t>(i) * static_cast<int64_t>(step));
    return out;
  }

  static void write_multiples(Json& node) {
    const std::vector<Json> values = multiples(node);
    for (const char* keyword : {"type", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      node.erase(keyword);
    node["enum"] = values;
  }

  Result<void> check_counts(const Json& node, const std::string& path, const char* min, const char* max) {
    for (const char* keyword : {min, max}) {
      if (!node.contains(keyword)) continue;
      const Json& value = node[keyword];
      if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxSchemaCount))
        return refuse(path, fmt::format("\"{}\" must be an integer from 0 to {}", keyword, kMaxSchemaCount));
    }
    return {};
  }

  Json& root_;
  const SchemaNotation notation_;
  std::set<const Json*> visited_;
  // Applied at the end: an insertion moves the other members of its object.
  std::vector<std::pair<Json*, const char*>> additions_;
  std::vector<Json*> one_of_, ipv4_, multiples_;
};

}  // namespace

Result<std::string> checked_json_schema(Json schema, SchemaNotation notation) {
  if (!schema.is_object()) return refuse("", "the schema must be an object");
  TRY(SchemaChecker(schema, notation).check());
  if (!has_finite_instance(schema)) return refuse("", "the schema has no finite instance (a part requires itself)");
  return dump_json(schema);
}

}  // namespace hocket
