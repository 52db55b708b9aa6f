#include "chat/template_probe.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hocket {
namespace {

constexpr const char* kSystem = "PROBE-SYSTEM-TEXT";
constexpr const char* kTool = "probe_tool";
constexpr const char* kKey = "probe_key";
constexpr const char* kValue = "probe-argument-value";

Message message(std::string role, std::optional<std::string> content) {
  Message out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

class Probe {
 public:
  Probe(const JinjaProgram& program, const std::string& bos, const std::string& eos)
      : program_(program), bos_(bos), eos_(eos) {}

  // "" when the template fails.
  std::string render(const TemplateInput& input, const InputStyle& style) const {
    const auto variables = template_variables(input, style, bos_, eos_);
    if (!variables) return {};
    auto text = program_.render(*variables, 1'700'000'000);
    return text ? std::move(*text) : std::string();
  }

 private:
  const JinjaProgram& program_;
  const std::string &bos_, &eos_;
};

Tool probe_tool() {
  Tool tool;
  tool.name = kTool;
  tool.description = "A tool.";
  tool.parameters_json = R"({"type":"object","properties":{"probe_key":{"type":"string","description":"A text."}},)"
                         R"("required":["probe_key"]})";
  return tool;
}

TemplateInput conversation(std::vector<Message> messages) {
  TemplateInput input;
  input.messages = std::move(messages);
  return input;
}

TemplateInput call_conversation(std::optional<std::string> content) {
  Message call = message("assistant", std::move(content));
  call.tool_calls.push_back({"abc123XYZ", kTool, std::string("{\"") + kKey + "\": \"" + kValue + "\"}"});
  Message result = message("tool", "42");
  result.tool_call_id = "abc123XYZ";
  result.name = kTool;
  TemplateInput input = conversation({message("user", "Hello"), std::move(call), std::move(result)});
  input.tools.push_back(probe_tool());
  return input;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Arguments that came out as JSON, not as a Python literal or a text in quotes.
bool shows_arguments(std::string_view text) {
  return has(text, kValue) && !has(text, std::string("{'") + kKey + "'") && !has(text, std::string("\\\"") + kKey);
}

}  // namespace

ProbeResult probe_template(const JinjaProgram& program, const std::string& source, const std::string& bos,
                           const std::string& eos) {
  ProbeResult out;
  const Probe probe(program, bos, eos);
  InputStyle style;
  style.developer_role = has(source, "developer");

  const TemplateInput with_system = conversation({message("system", kSystem), message("user", "Hello")});
  style.system_role = has(probe.render(with_system, style), kSystem);

  TemplateInput with_tools = conversation({message("user", "Hello")});
  with_tools.tools.push_back(probe_tool());
  out.capabilities.tools = has(probe.render(with_tools, style), kTool);

  // The first way to hand over a call that shows the arguments properly, else one that shows them at all.
  std::optional<InputStyle> proper, any;
  for (const bool null_content : {false, true}) {
    for (const bool object_arguments : {true, false}) {
      InputStyle trial = style;
      trial.null_content = null_content;
      trial.object_arguments = object_arguments;
      const std::string text = probe.render(call_conversation(std::nullopt), trial);
      if (!proper && shows_arguments(text)) proper = trial;
      if (!any && has(text, kValue)) any = trial;
    }
  }
  if (proper || any) {
    style = proper ? *proper : *any;
  } else {
    style.tool_calls = false;
  }

  TemplateInput thinking =
      conversation({message("user", "Hello"), message("assistant", "Hi"), message("user", "Go on")});
  thinking.messages[1].reasoning = "A thought.";
  const std::string on = probe.render(thinking, style);
  thinking.enable_thinking = false;
  out.capabilities.thinking = on != probe.render(thinking, style);

  out.capabilities.system_role = style.system_role;
  out.capabilities.tool_calls = style.tool_calls;
  out.capabilities.object_arguments = style.object_arguments;
  out.style = style;
  return out;
}

}  // namespace hocket
