#include "chat/tool_syntax/call_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace hocket {
namespace {

using Arguments = CallLayout::Arguments;

// Python's own constants; strings as in JSON, which Python reads too.
std::string python_literal(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (!value.is_structured()) return dump_json(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ", ";
    if (value.is_object()) out += dump_json(key) + ": ";
    out += python_literal(item);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

std::string gemma_literal(const Json& value) {
  if (value.is_string()) return "<|\"|>" + value.get<std::string>() + "<|\"|>";
  if (!value.is_structured()) return dump_json(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ",";
    if (value.is_object()) out += key + ":";
    out += gemma_literal(item);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

std::string tagged(const CallLayout& layout, const Json& arguments) {
  const CallSpelling& s = layout.spelling;
  const char* pad = layout.padded ? "\n" : "";
  std::string out;
  for (const auto& [key, value] : arguments.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
    out += s.key_open + key + s.value_open + pad + text + pad + s.value_close + s.between;
  }
  return out + s.last;
}

std::string python_arguments(const Json& arguments) {
  std::string out;
  for (const auto& [key, value] : arguments.items()) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", key, python_literal(value));
  }
  return "(" + out + ")";
}

std::string write_arguments(const CallLayout& layout, const std::string& json) {
  const auto arguments = parse_json(json.empty() ? "{}" : json);
  if (!arguments || !arguments->is_object()) return json;
  switch (layout.arguments) {
    case Arguments::kTagged:
      return tagged(layout, *arguments);
    case Arguments::kGemma:
      return gemma_literal(*arguments);
    case Arguments::kPython:
      return python_arguments(*arguments);
    case Arguments::kJson:
      break;
  }
  return json.empty() ? "{}" : json;
}

}  // namespace

std::string write_calls(const CallLayout& layout, const std::vector<ToolCall>& calls) {
  const CallSpelling& s = layout.spelling;
  std::string out = s.shared_lead;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) out += s.separator;
    out += s.lead + calls[i].name;
    if (layout.numbered) out += fmt::format(":{}", i);
    out += s.name_close + write_arguments(layout, calls[i].arguments) + s.trail;
  }
  return out + s.shared_trail;
}

}  // namespace hocket
