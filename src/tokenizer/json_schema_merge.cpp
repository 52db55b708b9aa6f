#include "tokenizer/json_schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/json_schema_facts.h"

namespace hocket {
namespace {

constexpr int kMaxDepth = 24;
constexpr int kMaxMerges = 2'000;

Error refuse(std::string_view what) {
  return Error(ErrorCode::kInvalid, fmt::format("\"allOf\": {}", what));
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

bool is_annotation(std::string_view key) {
  return key.starts_with("x-") ||
         is_one_of(key, {"title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated",
                         "readOnly", "writeOnly", "$defs", "definitions"});
}

Json list_of(const Json& value) {
  return value.is_array() ? value : Json::array({value});
}

Result<Json> common_types(const Json& a, const Json& b) {
  Json out = Json::array();
  const auto add = [&](const Json& type) {
    if (std::find(out.begin(), out.end(), type) == out.end()) out.push_back(type);
  };
  for (const Json& x : list_of(a)) {
    for (const Json& y : list_of(b)) {
      const bool narrowed = (x == "integer" && y == "number") || (x == "number" && y == "integer");
      if (x == y) add(x);
      if (narrowed) add("integer");
    }
  }
  if (out.empty()) return refuse("the parts have no \"type\" in common");
  return out.size() == 1 ? Json(out[0]) : out;
}

Result<Json> common_values(const Json& a, const Json& b) {
  Json out = Json::array();
  for (const Json& value : a) {
    if (std::find(b.begin(), b.end(), value) != b.end()) out.push_back(value);
  }
  if (out.empty()) return refuse("the parts have no value in common");
  return out;
}

class Merger {
 public:
  explicit Merger(Json& root) : root_(root) {}

  // A schema and all that it is made of.
  Result<void> walk(Json& node, int depth) {
    if (!node.is_object()) return {};
    if (depth > kMaxDepth) return refuse("so many levels are not supported");
    TRY(flatten(node, depth));
    if (const auto reference = node.find("$ref"); reference != node.end()) {
      Json* target = find_reference(root_, *reference);
      if (!target || !walked_.insert(reference->get<std::string>()).second) return {};
      return walk(*target, depth + 1);
    }
    for (const char* keyword : {"properties", "patternProperties"}) {
      const auto found = node.find(keyword);
      if (found == node.end() || !found->is_object()) continue;
      for (auto& [name, schema] : found->items()) TRY(walk(schema, depth + 1));
    }
    for (const char* keyword : {"items", "additionalProperties", "propertyNames"}) {
      if (node.contains(keyword)) TRY(walk(node[keyword], depth + 1));
    }
    for (const char* keyword : {"prefixItems", "anyOf", "oneOf", "allOf"}) {
      const auto found = node.find(keyword);
      if (found == node.end() || !found->is_array()) continue;
      for (Json& schema : *found) TRY(walk(schema, depth + 1));
    }
    return {};
  }

 private:
  Result<void> flatten(Json& node, int depth) {
    const auto parts = node.find("allOf");
    if (parts == node.end() || !parts->is_array() || parts->empty()) return {};
    bool alone = parts->size() == 1;
    for (const auto& [key, value] : node.items()) alone = alone && (key == "allOf" || is_annotation(key));
    if (alone) return {};
    // References go on finding what they name: the node itself stays until all is merged.
    const Json taken = *parts;
    Json merged = node;
    merged.erase("allOf");
    TRY(resolve(merged, depth));
    for (const Json& part : taken) {
      Json one = part;
      if (!one.is_object()) {
        if (one == true) continue;
        return refuse("each part must be a schema that accepts something");
      }
      TRY(resolve(one, depth));
      TRY(merge(merged, one, depth));
    }
    node = std::move(merged);
    return {};
  }

  // What the schema refers to takes the reference's place, and its own parts become one.
  Result<void> resolve(Json& schema, int depth) {
    if (++n_merges_ > kMaxMerges || depth > kMaxDepth) return refuse("so many or recursive parts are not supported");
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
      const Json* target = find_reference(root_, *reference);
      if (!target || !target->is_object()) return refuse("a \"$ref\" of a part names no schema");
      Json copy = *target;
      schema.erase("$ref");
      TRY(resolve(copy, depth + 1));
      TRY(merge(schema, copy, depth));
    }
    return flatten(schema, depth + 1);
  }

  Result<void> merge(Json& into, const Json& part, int depth) {
    if (++n_merges_ > kMaxMerges || depth > kMaxDepth) return refuse("so many or recursive parts are not supported");
    TRY(check_free_names(into, part));
    Json other = part;
    for (Json* schema : {&into, &other}) {
      if (!schema->contains("const")) continue;
      const Json values = Json::array({(*schema)["const"]});
      schema->erase("const");
      if (schema->contains("enum")) return refuse("\"const\" beside \"enum\" is not supported");
      (*schema)["enum"] = values;
    }
    for (const auto& [key, value] : other.items()) {
      const auto mine = into.find(key);
      if (mine == into.end()) {
        if (!is_one_of(key, {"$defs", "definitions"})) into[key] = value;
      } else if (is_annotation(key) || *mine == value) {
        continue;
      } else if (key == "type") {
        TRY_ASSIGN(*mine, common_types(*mine, value));
      } else if (key == "enum" && mine->is_array() && value.is_array()) {
        TRY_ASSIGN(*mine, common_values(*mine, value));
      } else if (key == "required" && mine->is_array() && value.is_array()) {
        for (const Json& name : value) {
          if (std::find(mine->begin(), mine->end(), name) == mine->end()) mine->push_back(name);
        }
      } else if (key == "properties" && mine->is_object() && value.is_object()) {
        for (const auto& [name, schema] : value.items()) TRY(merge_child(*mine, name, schema, depth));
      } else if (key == "items" && !into.contains("prefixItems") && !other.contains("prefixItems")) {
        TRY(merge_child(into, key, value, depth));
      } else if (is_one_of(key, {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})) {
        if (value.is_number() && mine->is_number() && value > *mine) *mine = value;
      } else if (is_one_of(key, {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})) {
        if (value.is_number() && mine->is_number() && value < *mine) *mine = value;
      } else {
        return refuse(fmt::format("parts with different \"{}\" are not supported", key));
      }
    }
    return {};
  }

  Result<void> merge_child(Json& holder, const std::string& key, const Json& schema, int depth) {
    const auto mine = holder.find(key);
    if (mine == holder.end()) {
      holder[key] = schema;
      return {};
    }
    if (*mine == schema || schema == true) return {};
    if (*mine == true) {
      *mine = schema;
      return {};
    }
    if (!mine->is_object() || !schema.is_object()) return refuse("a part accepts nothing");
    Json one = schema, both = *mine;
    TRY(resolve(both, depth + 1));
    TRY(resolve(one, depth + 1));
    TRY(merge(both, one, depth + 1));
    *mine = std::move(both);
    return {};
  }

  // What one part says about names that it does not know, another part's properties would have to follow.
  static Result<void> check_free_names(const Json& a, const Json& b) {
    const auto covers = [](const Json& closed, const Json& other) {
      const Json known = closed.value("properties", Json::object()), others = other.value("properties", Json::object());
      for (const char* keyword : {"additionalProperties", "patternProperties", "propertyNames"}) {
        const auto rule = closed.find(keyword);
        if (rule == closed.end() || *rule == true) continue;
        if (other.contains("patternProperties")) return false;
        const bool named = keyword == std::string_view("additionalProperties");
        for (const auto& [name, schema] : others.items()) {
          if (!named || !known.contains(name)) return false;
        }
      }
      return true;
    };
    const auto is_object = [](const Json& s) { return s.value("properties", Json::object()).is_object(); };
    if (!is_object(a) || !is_object(b)) return refuse("\"properties\" must be an object");
    if (!covers(a, b) || !covers(b, a)) {
      return refuse("a part that limits further properties together with properties of another is not supported");
    }
    return {};
  }

  Json& root_;
  std::set<std::string> walked_;  // references
  int n_merges_ = 0;
};

}  // namespace

Result<void> merge_all_of(Json& root) {
  return Merger(root).walk(root, 0);
}

}  // namespace hocket
