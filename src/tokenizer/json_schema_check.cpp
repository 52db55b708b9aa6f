#include "tokenizer/json_schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "tokenizer/json_schema_facts.h"

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

struct TypeKeywords {
  std::string_view type;
  std::vector<std::string_view> keywords;
};
const TypeKeywords kTypes[] = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
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

Error refuse(std::string_view path, std::string_view what) {
  return Error(ErrorCode::kInvalid, fmt::format("schema {}: {}", path.empty() ? "(root)" : path, what));
}

class SchemaChecker {
 public:
  explicit SchemaChecker(Json& root) : root_(root) {}

  Result<void> check() {
    TRY(check_schema(root_, ""));
    for (const auto& [node, key] : additions_) (*node)[key] = true;
    for (Json* node : one_of_) {
      Json options = std::move((*node)["oneOf"]);
      node->erase("oneOf");
      (*node)["anyOf"] = std::move(options);
    }
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
      return refuse(path, "\"allOf\" with more than one schema is not supported");
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
      for (auto& [name, schema] : properties->items())
        TRY(check_schema(schema, child(child(path, "properties"), name)));
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
    } else if (properties == node.end()) {
      additions_.emplace_back(&node, "additionalProperties");
    }
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

  Result<void> check_number(const Json& node, const std::string& path) {
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (node.contains(keyword) && !node[keyword].is_number())
        return refuse(path, fmt::format("\"{}\" must be a number", keyword));
    }
    return {};
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
  std::set<const Json*> visited_;
  // Applied at the end: an insertion moves the other members of its object.
  std::vector<std::pair<Json*, const char*>> additions_;
  std::vector<Json*> one_of_, ipv4_;
};

}  // namespace

Result<std::string> checked_json_schema(Json schema) {
  if (!schema.is_object()) return refuse("", "the schema must be an object");
  TRY(SchemaChecker(schema).check());
  if (!has_finite_instance(schema)) return refuse("", "the schema has no finite instance (a part requires itself)");
  return dump_json(schema);
}

}  // namespace hocket
