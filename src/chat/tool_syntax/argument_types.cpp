#include "chat/tool_syntax/argument_types.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/json_schema_facts.h"

namespace hocket {
namespace {

constexpr int kMaxDepth = 16;

ArgumentType type_of(Json& root, Json& schema, int depth) {
  ArgumentType out;
  if (!schema.is_object() || depth > kMaxDepth) return out;
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    Json* target = find_reference(root, *reference);
    return target ? type_of(root, *target, depth + 1) : out;
  }
  for (const char* keyword : {"const", "enum"}) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) continue;
    out.text = out.other = false;
    for (const Json& value :
         found->is_array() && keyword == std::string_view("enum") ? *found : Json::array({*found})) {
      (value.is_string() ? out.text : out.other) = true;
      if (value.is_string()) out.fixed.insert(value.get<std::string>());
    }
    return out;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const auto options = schema.find(keyword);
    if (options == schema.end() || !options->is_array()) continue;
    out.text = out.other = false;
    for (Json& option : *options) {
      ArgumentType one = type_of(root, option, depth + 1);
      out.text = out.text || one.text;
      out.other = out.other || one.other;
      out.fixed.merge(one.fixed);
    }
    return out;
  }
  if (const auto parts = schema.find("allOf"); parts != schema.end() && parts->is_array()) {
    for (Json& part : *parts) {
      const ArgumentType one = type_of(root, part, depth + 1);
      out.text = out.text && one.text;
      out.other = out.other && one.other;
    }
  }
  const auto type = schema.find("type");
  if (type == schema.end()) {
    for (const char* keyword : {"properties", "additionalProperties", "items", "prefixItems"}) {
      if (schema.contains(keyword)) out.text = false;
    }
    return out;
  }
  bool text = false, other = false;
  for (const Json& name : type->is_array() ? *type : Json::array({*type})) (name == "string" ? text : other) = true;
  out.text = out.text && text;
  out.other = out.other && other;
  return out;
}

}  // namespace

ArgumentTypes::ArgumentTypes(const std::string& parameters_json) {
  auto schema = parse_json(parameters_json);
  if (!schema || !schema->is_object()) return;
  const auto properties = schema->find("properties");
  if (properties != schema->end() && properties->is_object()) {
    for (auto& [name, property] : properties->items()) types_[name] = type_of(*schema, property, 0);
  }
  if (const auto more = schema->find("additionalProperties"); more != schema->end()) {
    others_ = type_of(*schema, *more, 0);
  }
}

const ArgumentType& ArgumentTypes::of(std::string_view name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? others_ : found->second;
}

std::string ArgumentTypes::json_of(const ArgumentType& type, const std::string& raw) {
  if (!type.other || type.fixed.count(raw) > 0) return dump_json(raw);
  if (const auto value = parse_json(raw); value && !(value->is_string() && type.text)) return dump_json(*value);
  // As Python prints them, which some templates do.
  if (raw == "True") return "true";
  if (raw == "False") return "false";
  if (raw == "None") return "null";
  return dump_json(raw);
}

}  // namespace hocket
