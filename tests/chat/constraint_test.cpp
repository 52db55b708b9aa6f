// tool_choice, response_format and grammars as constraints on the bytes of an answer.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chat/reply_format.h"
#include "support/byte_tokenizer.h"
#include "tokenizer/grammar.h"

namespace hocket {
namespace {

class ConstraintTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::load(fake::byte_vocabulary());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
    auto compiler = GrammarCompiler::create(*tokenizer_, tokenizer_->size());
    ASSERT_TRUE(compiler.ok()) << compiler.error().message;
    compiler_ = std::move(*compiler);
    Tool add;
    add.name = "add";
    add.parameters_json =
        R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false})";
    Tool now;
    now.name = "now";
    tools_ = {add, now};
  }

  Result<std::unique_ptr<TokenConstraint>> make(const ReplyFormat& format, ToolChoice choice,
                                                ResponseFormat response = {}, const std::string& grammar = "",
                                                bool thinking = false, bool parallel = true, bool with_tools = true) {
    return make_constraint(*compiler_, *tokenizer_, format, with_tools ? tools_ : std::vector<Tool>(), choice, parallel,
                           response, grammar, thinking);
  }

  // Whether the text may be written, and whether the answer may end there.
  struct Outcome {
    bool accepted, may_end;
  };
  Outcome follow(TokenConstraint& constraint, const std::string& text) const {
    std::vector<uint32_t> mask((tokenizer_->size() + 31) / 32);
    const auto is_allowed = [&](TokenId id) {
      std::fill(mask.begin(), mask.end(), 0u);
      const auto masked = constraint.allowed(mask);
      EXPECT_TRUE(masked.ok());
      return masked.ok() && (!*masked || (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1u));
    };
    for (const char c : text) {
      const TokenId id = static_cast<unsigned char>(c);
      if (!is_allowed(id)) return {false, false};
      const auto accepted = constraint.accept(id);
      if (!accepted.ok()) return {false, false};
    }
    return {true, is_allowed(fake::kImEnd)};
  }
  void expect(const Result<std::unique_ptr<TokenConstraint>>& made, const std::string& text, bool accepted,
              bool may_end = true) const {
    SCOPED_TRACE(text);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_NE(*made, nullptr);
    const auto copy = (*made)->clone();
    const Outcome outcome = follow(*copy, text);
    EXPECT_EQ(outcome.accepted, accepted);
    if (accepted) {
      EXPECT_EQ(outcome.may_end, may_end);
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
  std::vector<Tool> tools_;
};

const ToolChoice kNone{ToolChoiceKind::kNone, {}}, kAuto{}, kRequired{ToolChoiceKind::kRequired, {}},
    kAdd{ToolChoiceKind::kFunction, "add"};
const ResponseFormat kObject{ResponseFormat::Kind::kJsonObject, {}};

ReplyFormat format_of(ToolSyntax syntax, bool thinks = false) {
  ReplyFormat format;
  format.tools = syntax;
  if (thinks) {
    format.think_open = "<think>";
    format.think_close = "</think>";
  }
  return format;
}

// A call as the constraint wants it, and as the parser reads it back.
struct Spelling {
  ToolSyntax syntax;
  std::string add, now;
};
const std::vector<Spelling> kSpellings{
    {ToolSyntax::kGeneric, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {ToolSyntax::kHermes, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {ToolSyntax::kLlama3, "{\"name\": \"add\", \"parameters\": {\"a\": 1}}", "{\"name\": \"now\", \"parameters\": {}}"},
    {ToolSyntax::kMistral, "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
     "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]"},
    {ToolSyntax::kMistralNamed, "[TOOL_CALLS]add[ARGS]{\"a\": 1}", "[TOOL_CALLS]now[ARGS]{}"},
    {ToolSyntax::kFunctionary, "<function=add>{\"a\": 1}</function>", "<function=now>{}</function>"},
    {ToolSyntax::kRecipient, "add\n{\"a\": 1}", "now\n{}"},
};

TEST_F(ConstraintTest, RequiredMeansACall) {
  for (const Spelling& s : kSpellings) {
    SCOPED_TRACE(static_cast<int>(s.syntax));
    const ReplyFormat format = format_of(s.syntax);
    const auto required = make(format, kRequired);
    expect(required, s.add, true);
    expect(required, s.now, true);
    expect(required, "Hello", false);
    expect(required, "", true, false);
    const auto only_add = make(format, kAdd);
    expect(only_add, s.add, true);
    expect(only_add, s.now, false);
    for (const std::string& text : {s.add, s.now}) {
      const auto parser = ReplyParser::create(format, tools_, false);
      const auto deltas = parser->push(text);
      parser->finish();
      ASSERT_EQ(parser->n_tool_calls(), 1u);
      EXPECT_EQ(deltas.at(1).text, text == s.add ? "{\"a\": 1}" : "{}");
    }
  }
}

TEST_F(ConstraintTest, ParallelCallsCanBeForbidden) {
  const Spelling& s = kSpellings[1];
  expect(make(format_of(s.syntax), kRequired, {}, "", false, true), s.add + s.now, true);
  expect(make(format_of(s.syntax), kRequired, {}, "", false, false), s.add + s.now, false);
  expect(make(format_of(s.syntax), kAuto, {}, "", false, false), "Hi. " + s.add, true);
  expect(make(format_of(s.syntax), kAuto, {}, "", false, false), s.add + s.now, false);
}

TEST_F(ConstraintTest, AutoSleepsUntilACallBegins) {
  const Spelling& s = kSpellings[1];
  const auto made = make(format_of(s.syntax), kAuto);
  expect(made, "Hello {\"a\": 3", true);
  expect(made, "Hello " + s.add, true);
  expect(made, "<tool_call>\n{\"name\": \"none\"", false);
  expect(made, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"x", false);
  const auto free_form = make(format_of(ToolSyntax::kLlama3), kAuto);
  ASSERT_TRUE(free_form.ok());
  EXPECT_EQ(*free_form, nullptr);
  const auto none = make(format_of(s.syntax), kNone);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
}

TEST_F(ConstraintTest, ResponseFormats) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  expect(make(format, kNone, kObject), "{\"x\": [1]}", true);
  expect(make(format, kNone, kObject), "Hello", false);
  const ResponseFormat schema{ResponseFormat::Kind::kJsonSchema, tools_[0].parameters_json};
  expect(make(format, kNone, schema), "{\"a\": 12}", true);
  expect(make(format, kNone, schema), "{\"b\"", false);
  expect(make(format, kNone, {}, "root ::= \"yes\" | \"no\""), "yes", true);
  expect(make(format, kNone, {}, "root ::= \"yes\" | \"no\""), "maybe", false);
}

TEST_F(ConstraintTest, ThinkingComesFirst) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes, true);
  expect(make(format, kNone, kObject, "", true), "Let me think.</think>{\"a\": 1}", true);
  expect(make(format, kNone, kObject, "", true), "Let me think.</think>Hello", false);
  expect(make(format, kRequired, {}, "", true), "Hm <tool_call> hm</think>" + kSpellings[1].add, true);
  // A false call inside thinking wakes nothing.
  expect(make(format, kAuto, {}, "", true), "Hm <tool_call> hm</think>Hello", true);
  expect(make(format, kAuto, {}, "", true), "Hm</think>Hello <tool_call>x", false);
  // A model that is not thinking is bound at once.
  expect(make(format, kNone, kObject), "Hello", false);
}

// A vocabulary in which the opening tag is one token: the model may begin to think itself.
TEST_F(ConstraintTest, MayBeginToThink) {
  ReplyFormat format = format_of(ToolSyntax::kHermes, true);
  format.think_open = "<|im_start|>";
  const auto made = make(format, kNone, kObject);
  ASSERT_TRUE(made.ok());
  expect(made, "{\"a\": 1}", true);
  expect(made, "Hello", false);
  std::vector<uint32_t> mask((tokenizer_->size() + 31) / 32);
  ASSERT_TRUE(*(*made)->allowed(mask));
  EXPECT_TRUE(mask[fake::kImStart / 32] >> (fake::kImStart % 32) & 1u);
  ASSERT_TRUE((*made)->accept(fake::kImStart).ok());
  expect(made, "thought</think>{}", true);
  expect(made, "thought</think>x", false);
}

TEST_F(ConstraintTest, ConflictsNameTheirField) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  const auto expect_invalid = [](const Result<std::unique_ptr<TokenConstraint>>& made, const std::string& param) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(made.error().param, param);
  };
  expect_invalid(make(format, kRequired, {}, "", false, true, false), "tool_choice");
  expect_invalid(make(format, {ToolChoiceKind::kFunction, "other"}), "tool_choice");
  expect_invalid(make(format, kNone, kObject, "root ::= \"a\""), "grammar");
  expect_invalid(make(format, kAuto, {}, "root ::= \"a\""), "grammar");
  expect_invalid(make(format, kRequired, kObject), "response_format");
  expect_invalid(make(format, kAuto, kObject), "response_format");
  expect_invalid(make(format, kNone, {}, "root ::= ("), "grammar");
  expect_invalid(make(format, kNone, {ResponseFormat::Kind::kJsonSchema, "{\"type\": 3}"}), "response_format");
  tools_[0].name = "a\"b";
  expect_invalid(make(format, kRequired), "tools");
}

// A schema that cannot be honoured is refused where a promise was asked, and any object passes where none was.
TEST_F(ConstraintTest, SchemasThatCannotBeHonoured) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  tools_[0].parameters_json = R"({"type":"object","properties":{"a":{"not":{"type":"string"}}}})";
  const auto required = make(format, kRequired);
  ASSERT_FALSE(required.ok());
  EXPECT_EQ(required.error().param, "tools");
  EXPECT_NE(required.error().message.find("tools[0]"), std::string::npos);
  expect(make(format, kAuto), "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"z\": 1}}\n</tool_call>", true);
  tools_[0].strict = true;
  EXPECT_FALSE(make(format, kAuto).ok());
}

}  // namespace
}  // namespace hocket
