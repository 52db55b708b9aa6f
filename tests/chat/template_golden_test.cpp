// 70 chat templates × 8 conversations against Python jinja2 as transformers sets it up
// (tests/data/chat/templates.json). The templates themselves are read from the pinned source archive.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "chat/jinja/program.h"
#include "chat/template.h"
#include "chat_goldens.h"

namespace hocket {
namespace {

using testing::Golden;

// Texts where Python's own way is not worth following (docs/chat-templates.md).
const std::map<std::string, std::string> kKnownDifferences{
    {"Apriel-1.6-15b-Thinker-fixed.jinja", "Python's repr of a text with both kinds of quotes"},
    {"unsloth-Apriel-1.5.jinja", "Python's repr of a text with both kinds of quotes"},
    {"meetkai-functionary-medium-v3.1.jinja", "|safe next to HTML escaping"},
};

class TemplateGolden : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const Golden& golden = testing::chat_goldens();
    entry_ = golden.json["templates"][GetParam()];
    name_ = entry_["template"];
    const std::string path = std::string(HOCKET_LLAMA_SOURCE) + "/models/templates/" + name_;
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in) << path;
    std::stringstream text;
    text << in.rdbuf();
    source_ = text.str();
    // Another text than the goldens were made from would make every difference a riddle.
    ASSERT_EQ(testing::sha256(source_), entry_["sha256"].get<std::string>()) << path;
  }

  void expect_continuation(const ChatTemplate& chat_template, std::string expected) {
    TemplateInput input = testing::chat_goldens().input("continue");
    const auto thinking = chat_template.render(input);
    input.enable_thinking = false;
    const auto plain = chat_template.render(input);
    ASSERT_TRUE(thinking.ok() && plain.ok());
    if (name_.starts_with("meta-llama-Llama-3.")) {
      const std::size_t at = expected.find("26 Jul 2024");
      if (at != std::string::npos) expected.replace(at, 11, "15 Jan 2026");
    }
    EXPECT_TRUE(*thinking == expected || *plain == expected) << *thinking << "\n---\n" << expected;
  }

  Json entry_;
  std::string name_, source_;
};

// The language alone, with the variables that Python gets.
TEST_P(TemplateGolden, EngineRendersAsPython) {
  const Golden& golden = testing::chat_goldens();
  const auto program = JinjaProgram::parse(source_, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (const auto& [conversation, expected] : entry_["results"].items()) {
    SCOPED_TRACE(name_ + " " + conversation);
    if (expected["engine"].is_null()) continue;  // continue_final_message is not the engine's
    const auto text = (*program)->render(golden.python_variables(conversation), golden.now);
    if (expected["engine"] == "same") {
      ASSERT_TRUE(text.ok()) << text.error().message;
      EXPECT_EQ(*text, expected["text"].get<std::string>());
    } else if (expected["engine"] == "differs") {
      EXPECT_TRUE(kKnownDifferences.count(name_));
      EXPECT_TRUE(text.ok()) << text.error().message;
    } else if (expected["engine"] == "renders where python errs") {
      ASSERT_TRUE(text.ok()) << text.error().message;
      // Python's sandbox forbids list.append; the reference's text is what the template means.
      if (name_.starts_with("Kimi-K2") && conversation == "tools") {
        EXPECT_EQ(*text, expected["llama_cpp_text"].get<std::string>());
      }
    } else {
      // Python has no from_json filter; here it works.
      const bool more_liberal = source_.find("from_json") != std::string::npos;
      EXPECT_EQ(text.ok(), more_liberal && conversation == "tools_string_arguments");
    }
  }
}

// The whole way from messages. What differs from Python on purpose: enable_thinking is always passed, and the dates.
TEST_P(TemplateGolden, ChatTemplateRendersAsTransformers) {
  const Golden& golden = testing::chat_goldens();
  const auto parsed = ChatTemplate::parse(source_, golden.bos, golden.eos);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto program = JinjaProgram::parse(source_, {});
  const ChatTemplate::Capabilities& can = (*parsed)->capabilities();
  for (const auto& [conversation, expected] : entry_["results"].items()) {
    SCOPED_TRACE(name_ + " " + conversation);
    const auto text = (*parsed)->render(golden.input(conversation));
    ASSERT_TRUE(text.ok() || name_.find("functionary") != std::string::npos) << text.error().message;
    if (conversation == "continue") {
      if (expected.contains("text")) expect_continuation(**parsed, expected["text"]);
      continue;
    }
    const bool with_tools = conversation.starts_with("tools");
    if (with_tools && !can.tool_calls) {
      EXPECT_NE(text->find("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {"), std::string::npos);
      EXPECT_NE(text->find("21.5"), std::string::npos);
      continue;
    }
    if (!can.system_role) {
      EXPECT_NE(text->find(golden.json["conversations"][conversation]["messages"][0]["content"].get<std::string>()),
                std::string::npos);
      continue;
    }
    // Here the goldens' objects would have to be the very text that Python's json.dumps writes.
    if (conversation == "tools" && !can.object_arguments) continue;
    // Arguments arrive as text; they must come out as the object that they are.
    const std::string same_as = with_tools && can.object_arguments ? "tools" : conversation;
    if (expected["llama_cpp"] == "same" && expected.contains("text") && same_as == conversation) {
      EXPECT_EQ(*text, expected["text"].get<std::string>());
    }
    Json variables = golden.python_variables(same_as);
    if (variables["tools"].is_null()) variables.erase("tools");
    if (!variables.contains("enable_thinking")) variables["enable_thinking"] = true;
    variables["date_string"] = "15 Jan 2026";
    variables["datetime"] = "Jan 15 2026";
    const auto reference = (*program)->render(variables, golden.now);
    EXPECT_EQ(text.ok(), reference.ok());
    if (text.ok() && reference.ok()) {
      EXPECT_EQ(*text, *reference);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TemplateGolden, ::testing::ValuesIn(testing::golden_templates()),
                         [](const auto& which) { return testing::golden_test_name(which.param); });

}  // namespace
}  // namespace hocket
