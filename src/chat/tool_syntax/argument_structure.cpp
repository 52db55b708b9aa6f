#include "chat/tool_syntax/argument_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tokenizer/gbnf.h"
#include "tokenizer/json_schema_check.h"
#include "tokenizer/json_schema_facts.h"

namespace hocket {
namespace {

using Kind = Structure::Kind;

constexpr int kMaxDepth = 16;  // of references and alternatives
constexpr const char* kAnyKey = "[a-zA-Z_][a-zA-Z0-9_.-]{0,63}";
constexpr const char* kAnyIdentifier = "[a-zA-Z_][a-zA-Z0-9_]{0,63}";

Error refuse(std::string_view name, std::string_view what) {
  return Error(ErrorCode::kInvalid,
               fmt::format("schema property \"{}\": {} in this model's notation of arguments", name, what));
}

// References into the whole schema, from a part that stands alone.
void move_references(Json& node) {
  if (node.is_array()) {
    for (Json& item : node) move_references(item);
  }
  if (!node.is_object()) return;
  for (auto& [key, value] : node.items()) {
    if (key == "const" || key == "enum" || key == "default" || key == "examples") continue;
    if (key == "$ref" && value.is_string() && value.get_ref<const std::string&>().starts_with('#')) {
      value = "#/$defs/whole" + value.get<std::string>().substr(1);
    } else {
      move_references(value);
    }
  }
}

bool is_identifier(const std::string& name) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), word) &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

class ArgumentsBuilder {
 public:
  ArgumentsBuilder(const CallLayout& layout, Json root) : layout_(layout), root_(std::move(root)) {}

  Result<Structure> build() {
    for (const auto& [key, value] : root_.items()) {
      static constexpr std::string_view kRefused[] = {
          "$ref",         "anyOf", "allOf", "const", "enum", "minProperties", "maxProperties", "patternProperties",
          "propertyNames"};
      if (std::find(std::begin(kRefused), std::end(kRefused), key) != std::end(kRefused)) {
        return Error(ErrorCode::kInvalid,
                     fmt::format("schema (root): \"{}\" is not supported in this model's notation of arguments", key));
      }
    }
    if (root_.value("type", Json("object")) != "object") {
      return Error(ErrorCode::kInvalid, "schema (root): arguments must be an object");
    }
    return layout_.arguments == CallLayout::Arguments::kPython ? python() : tagged();
  }

 private:
  bool is_python() const { return layout_.arguments == CallLayout::Arguments::kPython; }

  struct Property {
    Structure text;  // name and value
    bool required = false;
  };

  Result<std::vector<Property>> properties() {
    std::vector<Property> out;
    const auto found = root_.find("properties");
    if (found == root_.end()) return out;
    const Json required = root_.value("required", Json::array());
    for (auto& [name, schema] : found->items()) {
      const bool fits =
          is_python() ? is_identifier(name) : !name.empty() && name.find_first_of("<>\"\n") == std::string::npos;
      if (!fits) return refuse(name, "the name cannot be written");
      TRY_ASSIGN(Structure value, value_of(schema, name, 0));
      Structure begin = Structure::literal(is_python() ? name + "=" : opened(name));
      out.push_back({Structure::sequence({std::move(begin), std::move(value)}),
                     std::find(required.begin(), required.end(), Json(name)) != required.end()});
    }
    return out;
  }

  // Any other property; nothing when there may be none.
  Result<std::vector<Structure>> other_property() {
    std::vector<Structure> out;
    const auto more = root_.find("additionalProperties");
    if (more == root_.end() || (more->is_boolean() && !more->get<bool>())) return out;
    TRY_ASSIGN(Structure value, value_of(*more, "additionalProperties", 0));
    if (is_python()) {
      out.push_back(Structure::sequence(
          {Structure::of(Kind::kPattern, kAnyIdentifier), Structure::literal("="), std::move(value)}));
    } else {
      const CallSpelling& s = layout_.spelling;
      out.push_back(Structure::sequence({Structure::literal(s.key_open), Structure::of(Kind::kPattern, kAnyKey),
                                         Structure::literal(s.value_open + pad()), std::move(value)}));
    }
    return out;
  }

  // name_close stands before, the trail behind.
  Result<Structure> tagged() {
    TRY_ASSIGN(std::vector<Property> named, properties());
    TRY_ASSIGN(std::vector<Structure> other, other_property());
    std::vector<Structure> parts{Structure::literal("")};
    for (Property& property : named) {
      parts.push_back(property.required ? std::move(property.text) : Structure::optional(std::move(property.text)));
    }
    for (Structure& any : other) parts.push_back(Structure::any(std::move(any)));
    parts.push_back(Structure::literal(layout_.spelling.last));
    return Structure::sequence(std::move(parts));
  }

  Result<Structure> python() {
    TRY_ASSIGN(std::vector<Property> named, properties());
    TRY_ASSIGN(const std::vector<Structure> other, other_property());
    const auto after_comma = [](const Structure& s) { return Structure::sequence({Structure::literal(", "), s}); };
    // The list may begin with any property up to the first required one.
    std::vector<Structure> lists;
    bool may_be_empty = true;
    for (std::size_t i = 0; i < named.size() && may_be_empty; ++i) {
      std::vector<Structure> list{named[i].text};
      for (std::size_t j = i + 1; j < named.size(); ++j) {
        Structure next = after_comma(named[j].text);
        list.push_back(named[j].required ? std::move(next) : Structure::optional(std::move(next)));
      }
      for (const Structure& any : other) list.push_back(Structure::any(after_comma(any)));
      lists.push_back(Structure::sequence(std::move(list)));
      may_be_empty = !named[i].required;
    }
    if (may_be_empty) {
      for (const Structure& any : other) lists.push_back(Structure::sequence({any, Structure::any(after_comma(any))}));
    }
    if (lists.empty()) return Structure::literal("()");
    Structure list = Structure::choice(std::move(lists));
    if (may_be_empty) list = Structure::optional(std::move(list));
    return Structure::sequence({Structure::literal("("), std::move(list), Structure::literal(")")});
  }

  std::string pad() const { return layout_.padded ? "\n" : ""; }
  std::string opened(const std::string& name) const {
    return layout_.spelling.key_open + name + layout_.spelling.value_open + pad();
  }
  std::string closing() const {
    return is_python() ? "" : pad() + layout_.spelling.value_close + layout_.spelling.between;
  }
  Structure closed(Structure value) const {
    return Structure::sequence({std::move(value), Structure::literal(closing())});
  }

  // A value with what closes it.
  Result<Structure> value_of(Json& schema, const std::string& name, int depth) {
    if (depth > kMaxDepth) return refuse(name, "so many references and alternatives are not supported");
    if (schema.is_boolean()) return any_value();
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
      Json* target = find_reference(root_, *reference);
      if (!target) return refuse(name, "\"$ref\" names nothing");
      return value_of(*target, name, depth + 1);
    }
    if (schema.contains("const")) return fixed({schema["const"]}, name);
    if (schema.contains("enum")) return fixed(schema["enum"].get<std::vector<Json>>(), name);
    for (const char* keyword : {"anyOf", "allOf"}) {
      if (!schema.contains(keyword)) continue;
      std::vector<Structure> options;
      for (Json& option : schema[keyword]) {
        TRY_ASSIGN(Structure one, value_of(option, name, depth + 1));
        options.push_back(std::move(one));
      }
      return Structure::choice(std::move(options));
    }
    const auto type = schema.find("type");
    if (type == schema.end()) {
      for (const char* keyword : {"properties", "additionalProperties", "items", "prefixItems", "required"}) {
        if (schema.contains(keyword)) return json_value(schema);
      }
      return any_value();
    }
    if (type->is_array()) {
      std::vector<Structure> options;
      for (const Json& one_type : *type) {
        Json one = schema;
        one["type"] = one_type;
        TRY_ASSIGN(Structure option, value_of(one, name, depth + 1));
        options.push_back(std::move(option));
      }
      return Structure::choice(std::move(options));
    }
    if (is_python()) {
      if (*type == "boolean") return Structure::choice({Structure::literal("True"), Structure::literal("False")});
      if (*type == "null") return Structure::literal("None");
      return json_value(schema);
    }
    return *type == "string" ? raw_string(schema, name) : Result<Structure>(json_value(schema));
  }

  Structure any_value() const {
    return is_python() ? Structure::json("{}") : Structure::until(closing(), {layout_.spelling.value_close});
  }

  Structure json_value(const Json& schema) const {
    Json alone = schema;
    if (dump_json(alone).find("\"$ref\"") != std::string::npos) {
      move_references(alone);
      Json whole = root_;
      move_references(whole);
      alone["$defs"] = Json{{"whole", std::move(whole)}};
    }
    return closed(Structure::json(dump_json(alone)));
  }

  Result<Structure> fixed(const std::vector<Json>& values, const std::string& name) const {
    std::vector<Structure> options;
    for (const Json& value : values) {
      std::string text = value.is_string() && !is_python() ? value.get<std::string>() : dump_json(value);
      if (is_python() && value.is_boolean()) text = value.get<bool>() ? "True" : "False";
      if (is_python() && value.is_null()) text = "None";
      if (!is_python() && text.find(layout_.spelling.value_close) != std::string::npos) {
        return refuse(name, fmt::format("the value {} cannot be written", dump_json(value)));
      }
      options.push_back(Structure::literal(text + closing()));
    }
    return Structure::choice(std::move(options));
  }

  Result<Structure> raw_string(const Json& schema, const std::string& name) const {
    if (schema.contains("format")) return refuse(name, "\"format\" is not supported");
    if (const auto pattern = schema.find("pattern"); pattern != schema.end()) {
      const std::string text = pattern->get<std::string>();
      for (const char* wide : {".", "<", "[^", "\\S", "\\W", "\\D", "\\x", "\\u", "\\c"}) {
        if (text.find(wide) != std::string::npos)
          return refuse(name, "a \"pattern\" that may match \"<\" is not supported");
      }
      return closed(Structure::of(Kind::kPattern, text));
    }
    if (!schema.contains("minLength") && !schema.contains("maxLength")) {
      return Structure::until(closing(), {layout_.spelling.value_close});
    }
    const auto min = schema.value("minLength", 0), max = schema.value("maxLength", -1);
    if (std::max(min, max) > kMaxGbnfRepeat) {
      return refuse(name, fmt::format("a length above {} is not supported", kMaxGbnfRepeat));
    }
    if (max >= 0 && max < min) return refuse(name, "a \"maxLength\" below \"minLength\" is not supported");
    if (max == 0) return Structure::literal(closing());
    return closed(Structure::of(Kind::kPattern,
                                max < 0 ? fmt::format("[^<]{{{},}}", min) : fmt::format("[^<]{{{},{}}}", min, max)));
  }

  const CallLayout& layout_;
  Json root_;
};

}  // namespace

Result<Structure> arguments_structure(const CallLayout& layout, const std::string& schema_json) {
  switch (layout.arguments) {
    case CallLayout::Arguments::kJson:
      return Structure::json(schema_json);
    case CallLayout::Arguments::kGemma:
      return Structure::of(Kind::kGemma, schema_json);
    case CallLayout::Arguments::kTagged:
    case CallLayout::Arguments::kPython:
      break;
  }
  TRY_ASSIGN(Json schema, parse_json(schema_json));
  TRY_ASSIGN(const std::string checked, checked_json_schema(std::move(schema)));
  TRY_ASSIGN(Json root, parse_json(checked));
  return ArgumentsBuilder(layout, std::move(root)).build();
}

}  // namespace hocket
