#include "chat/template_probe.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hocket {
namespace {

constexpr const char* kSystem = "PROBE-SYSTEM-TEXT";
constexpr const char* kOtherValue = "probe-other-value";

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

Tool probe_tool(const std::string& name) {
  Tool tool;
  tool.name = name;
  tool.description = "A tool.";
  tool.parameters_json = R"({"type":"object","properties":{"probe_key":{"type":"string","description":"A text."},)"
                         R"("probe_number":{"type":"integer","description":"A number."}},"required":["probe_key"]})";
  return tool;
}

TemplateInput conversation(std::vector<Message> messages) {
  TemplateInput input;
  input.messages = std::move(messages);
  return input;
}

// n_calls is 1 or 2.
TemplateInput call_conversation(std::optional<std::string> content, int n_calls = 1) {
  const CallProbe& probe = call_probe();
  Message call = message("assistant", std::move(content));
  call.tool_calls.push_back({"abc123XYZ", probe.first,
                             "{\"" + probe.text_key + "\": \"" + probe.text_value + "\", \"" + probe.number_key +
                                 "\": " + probe.number_value + "}"});
  if (n_calls > 1)
    call.tool_calls.push_back({"abc123XYy", probe.second, "{\"" + probe.text_key + "\": \"" + kOtherValue + "\"}"});
  std::vector<Message> messages{message("user", "Hello"), call};
  for (const ToolCall& made : call.tool_calls) {
    Message result = message("tool", "42");
    result.tool_call_id = made.id;
    result.name = made.name;
    messages.push_back(std::move(result));
  }
  TemplateInput input = conversation(std::move(messages));
  input.tools = {probe_tool(probe.first), probe_tool(probe.second)};
  return input;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Arguments that came out as JSON, not as a Python literal or a text in quotes.
bool shows_arguments(std::string_view text) {
  return has(text, call_probe().text_value) && !has(text, std::string("{'") + call_probe().text_key + "'") &&
         !has(text, std::string("\\\"") + call_probe().text_key);
}

// Where the template looks for reasoning: in a message with calls, which is where all templates keep it.
void find_reasoning_style(const Probe& probe, InputStyle& style) {
  constexpr const char* kThought = "PROBE-THOUGHT";
  const auto rendered = [&](std::optional<std::string> content) {
    TemplateInput input = call_conversation(std::move(content));
    input.messages[1].reasoning = kThought;
    return probe.render(input, style);
  };
  for (const ReasoningKey key : {ReasoningKey::kReasoningContent, ReasoningKey::kThinking}) {
    style.reasoning_key = key;
    if (!has(rendered(std::nullopt), kThought)) continue;
    style.reasoning_excludes_content = rendered("PROBE-CONTENT").empty();
    return;
  }
  style.reasoning_key = ReasoningKey::kReasoningContent;
}

}  // namespace

const CallProbe& call_probe() {
  static const CallProbe kProbe{"probe_tool", "probe_other", "probe_key", "probe-argument-value", "probe_number", "7"};
  return kProbe;
}

ProbeResult probe_template(const JinjaProgram& program, const std::string& source, const std::string& bos,
                           const std::string& eos) {
  ProbeResult out;
  const Probe probe(program, bos, eos);
  InputStyle style;
  style.developer_role = has(source, "developer");

  const TemplateInput with_system = conversation({message("system", kSystem), message("user", "Hello")});
  style.system_role = has(probe.render(with_system, style), kSystem);

  TemplateInput with_tools = conversation({message("user", "Hello")});
  with_tools.tools.push_back(probe_tool(call_probe().first));
  out.capabilities.tools = has(probe.render(with_tools, style), call_probe().first);

  // The first way to hand over a call that shows the arguments properly, else one that shows them at all.
  std::optional<InputStyle> proper, any;
  for (const bool null_content : {false, true}) {
    for (const bool object_arguments : {true, false}) {
      InputStyle trial = style;
      trial.null_content = null_content;
      trial.object_arguments = object_arguments;
      const std::string text = probe.render(call_conversation(std::nullopt), trial);
      if (!proper && shows_arguments(text)) proper = trial;
      if (!any && has(text, call_probe().text_value)) any = trial;
    }
  }
  if (proper || any) {
    style = proper ? *proper : *any;
    out.call_sample = probe.render(call_conversation(std::nullopt, 2), style);
    style.single_calls = !has(out.call_sample, kOtherValue);
    if (out.call_sample.empty()) out.call_sample = probe.render(call_conversation(std::nullopt), style);
  } else {
    style.tool_calls = false;
  }
  find_reasoning_style(probe, style);

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
