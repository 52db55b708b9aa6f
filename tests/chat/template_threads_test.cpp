// One template, many conversations at once: the parsed program is shared, and a render may not write to it.
// ThreadSanitizer is the reader that matters.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "chat/template.h"

namespace hocket {
namespace {

// What templates of models use: macros, namespaces, loops, filters, slices, methods, JSON, time.
constexpr const char* kTemplate = R"({%- macro line(role, text) -%}
[{{ role | upper }}] {{ text | trim }}{{ eos_token }}
{%- endmacro -%}
{%- set state = namespace(n=0, last='') -%}
{{- bos_token }}{{ strftime_now('%Y') }}
{%- for tool in tools or [] %} {{ tool.function.name }}={{ tool | tojson }}{% endfor -%}
{%- for m in messages -%}
  {%- set state.n = state.n + 1 -%}
  {%- set state.last = m.content.split(' ')[-1] -%}
  {{- loop.index }}/{{ messages | length }}{{ line(m.role, m.content) }}
  {%- if loop.last and m.role == 'user' and 'x' in m.content %} {{ messages[::-1][0]['content'][:3] }}{% endif -%}
{%- endfor -%}
{{- state.n }}{{ state.last }}
{%- if add_generation_prompt %}<assistant>{% endif -%})";

TemplateInput conversation(std::size_t n_messages) {
  TemplateInput input;
  for (std::size_t i = 0; i < n_messages; ++i) {
    Message message;
    message.role = i % 2 == 0 ? "user" : "assistant";
    message.content = " text x " + std::to_string(n_messages * 100 + i);
    input.messages.push_back(message);
  }
  Tool tool;
  tool.name = "f" + std::to_string(n_messages);
  tool.parameters_json = R"({"type": "object", "properties": {"a": {"type": "string"}}})";
  input.tools = {tool};
  input.now = std::chrono::system_clock::time_point(std::chrono::hours(24 * 366));
  return input;
}

TEST(ChatTemplateThreads, RendersManyConversationsAtOnce) {
  const auto parsed = ChatTemplate::parse(kTemplate, "<s>", "</s>");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const ChatTemplate& shared = **parsed;
  std::vector<std::string> alone;
  for (std::size_t n = 1; n <= 4; ++n) {
    const auto text = shared.render(conversation(n));
    ASSERT_TRUE(text.ok()) << text.error().message;
    alone.push_back(*text);
  }
  EXPECT_NE(alone[0].find("<s>1971"), std::string::npos) << alone[0];
  EXPECT_NE(alone[0].find("1/1[USER] text x 100</s>"), std::string::npos) << alone[0];

  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 10; ++i) {
        const std::size_t which = (t + i) % alone.size();
        const auto text = shared.render(conversation(which + 1));
        EXPECT_TRUE(text.ok() && *text == alone[which]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hocket
