// support/json_schema_validator.h: says whether a JSON value satisfies a schema, independently of the code under test.
//
// The keywords are those that docs/grammars.md accepts; an unknown one fails the test that uses it.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "base/utf8.h"

namespace hocket::fake {

using nlohmann::json;

class SchemaValidator {
 public:
  explicit SchemaValidator(json schema) : root_(std::move(schema)) {}

  // "" when the value is valid, otherwise what is wrong.
  std::string check(const json& value) const { return check(root_, value); }

 private:
  static bool has_type(const json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number() && value == std::floor(value.get<double>()));
    if (type == "number") return value.is_number();
    return type == std::string(value.type_name());
  }
  static std::size_t length(const std::string& text) {
    std::size_t n = 0;
    for (std::string_view rest = text; !rest.empty(); ++n) rest.remove_prefix(decode_utf8(rest).n_bytes);
    return n;
  }

  std::string check(const json& schema, const json& value) const {
    if (schema.is_boolean()) return schema.get<bool>() ? "" : "false schema";
    const auto fail = [&](const std::string& key) {
      return key + " of " + schema.dump() + " broken by " + value.dump();
    };
    for (const auto& [key, v] : schema.items()) {
      if (key == "$ref") {
        const std::string uri = v;
        if (const auto e = check(uri == "#" ? root_ : root_.at(json::json_pointer(uri.substr(1))), value); !e.empty())
          return e;
      } else if (key == "type") {
        const json types = v.is_array() ? v : json::array({v});
        if (std::none_of(types.begin(), types.end(), [&](auto& t) { return has_type(value, t); })) return fail(key);
      } else if (key == "const") {
        if (value != v) return fail(key);
      } else if (key == "enum") {
        if (std::find(v.begin(), v.end(), value) == v.end()) return fail(key);
      } else if (key == "anyOf" || key == "oneOf" || key == "allOf") {
        const auto n = std::count_if(v.begin(), v.end(), [&](auto& s) { return check(s, value).empty(); });
        if (key == "anyOf" ? n == 0 : key == "oneOf" ? n != 1 : n != static_cast<long>(v.size())) return fail(key);
      } else if (value.is_object() && key == "properties") {
        for (const auto& [name, s] : v.items()) {
          if (!value.contains(name)) continue;
          if (const auto e = check(s, value[name]); !e.empty()) return e;
        }
      } else if (value.is_object() && key == "required") {
        for (const auto& name : v) {
          if (!value.contains(name.get<std::string>())) return fail(key);
        }
      } else if (value.is_object() && key == "additionalProperties") {
        for (const auto& [name, item] : value.items()) {
          if (schema.contains("properties") && schema["properties"].contains(name)) continue;
          if (schema.contains("patternProperties")) {
            const auto& patterns = schema["patternProperties"].items();
            if (std::any_of(patterns.begin(), patterns.end(),
                            [&](const auto& pattern) { return std::regex_search(name, std::regex(pattern.key())); }))
              continue;
          }
          if (const auto e = check(v, item); !e.empty()) return e;
        }
      } else if (value.is_object() && key == "patternProperties") {
        for (const auto& [pattern, s] : v.items()) {
          for (const auto& [name, item] : value.items()) {
            if (!std::regex_search(name, std::regex(pattern))) continue;
            if (const auto e = check(s, item); !e.empty()) return e;
          }
        }
      } else if (value.is_object() && key == "propertyNames") {
        for (const auto& [name, item] : value.items()) {
          if (const auto e = check(v, json(name)); !e.empty()) return e;
        }
      } else if (value.is_array() && key == "items") {
        const std::size_t from = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
        for (std::size_t i = from; i < value.size(); ++i) {
          if (const auto e = check(v, value[i]); !e.empty()) return e;
        }
      } else if (value.is_array() && key == "prefixItems") {
        for (std::size_t i = 0; i < std::min(v.size(), value.size()); ++i) {
          if (const auto e = check(v[i], value[i]); !e.empty()) return e;
        }
      } else if ((key == "minItems" && value.is_array() && value.size() < v) ||
                 (key == "maxItems" && value.is_array() && value.size() > v) ||
                 (key == "minProperties" && value.is_object() && value.size() < v) ||
                 (key == "maxProperties" && value.is_object() && value.size() > v) ||
                 (key == "multipleOf" && value.is_number() && value.get<int64_t>() % v.get<int64_t>() != 0) ||
                 (key == "minLength" && value.is_string() && length(value) < v) ||
                 (key == "maxLength" && value.is_string() && length(value) > v) ||
                 (key == "minimum" && value.is_number() && value < v) ||
                 (key == "maximum" && value.is_number() && value > v) ||
                 (key == "exclusiveMinimum" && value.is_number() && value <= v) ||
                 (key == "exclusiveMaximum" && value.is_number() && value >= v)) {
        return fail(key);
      } else if (value.is_string() && key == "pattern") {
        if (!std::regex_search(value.get<std::string>(), std::regex(v.get<std::string>()))) return fail(key);
      } else if (value.is_string() && key == "format") {
        if (!matches_format(value, v)) return fail(key);
      }
    }
    return "";
  }

  static bool matches_format(const std::string& text, const std::string& format) {
    static const std::string date = "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])";
    static const std::string time =
        "([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
    static const std::string octet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
    const auto is = [&](const std::string& pattern) { return std::regex_match(text, std::regex(pattern)); };
    if (format == "date") return is(date);
    if (format == "time") return is(time);
    if (format == "date-time") return is(date + "T" + time);
    if (format == "ipv4") return is("(" + octet + "\\.){3}" + octet);
    if (format == "uuid") return is("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
    if (format == "email") return is("[^@]+@[^@]+");
    if (format == "hostname") return is("[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63})*");
    if (format == "ipv6") return is("[0-9a-fA-F:.]+");
    if (format == "duration") return is("P[0-9YMWDTHS]+");
    if (format == "uri") return is("[A-Za-z][A-Za-z0-9+.-]*:[^ ]*");
    return false;
  }

  json root_;
};

}  // namespace hocket::fake
