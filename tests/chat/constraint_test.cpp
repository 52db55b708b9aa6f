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

// With tools a response format means: a call, or such an answer.
TEST_F(ConstraintTest, ResponseFormatsBesideTools) {
  for (const Spelling& s : kSpellings) {
    SCOPED_TRACE(static_cast<int>(s.syntax));
    const std::string to_user = s.syntax == ToolSyntax::kRecipient ? "all\n" : "";
    const ResponseFormat schema{ResponseFormat::Kind::kJsonSchema, tools_[0].parameters_json};
    const auto either = make(format_of(s.syntax), kAuto, schema);
    expect(either, s.add, true);
    expect(either, to_user + "{\"a\": 1}", true);
    expect(either, to_user + "{\"b\"", false);
    expect(either, to_user + "Hello", false);
    const auto forced = make(format_of(s.syntax), kRequired, schema);
    expect(forced, s.now, true);
    expect(forced, to_user + "{\"a\": 1}", false);
  }
  const auto bad = make(format_of(ToolSyntax::kHermes), kAuto, {ResponseFormat::Kind::kJsonSchema, "{\"not\": {}}"});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().param, "response_format");
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

// An opening tag of a control token and text: once begun, it is finished.
TEST_F(ConstraintTest, MayBeginToThinkWithSeveralTokens) {
  const auto tokenizer = fake::byte_tokenizer({.more_control = {"<|channel>", "<channel|>"}});
  auto compiler = GrammarCompiler::create(*tokenizer, tokenizer->size());
  ASSERT_TRUE(compiler.ok());
  ReplyFormat format = format_of(ToolSyntax::kHermes);
  format.think_open = "<|channel>thought\n";
  format.think_close = "<channel|>";
  auto made = make_constraint(**compiler, *tokenizer, format, {}, kNone, true, kObject, "", false);
  ASSERT_TRUE(made.ok());
  TokenConstraint& constraint = **made;
  std::vector<uint32_t> mask((tokenizer->size() + 31) / 32);
  const auto allowed = [&](TokenId id) {
    const auto masked = constraint.allowed(mask);
    return masked.ok() && (!*masked || (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1u) != 0);
  };
  const TokenId open = *tokenizer->find("<|channel>"), close = *tokenizer->find("<channel|>");
  EXPECT_TRUE(allowed(open));
  EXPECT_TRUE(allowed('{'));
  EXPECT_FALSE(allowed('x'));
  ASSERT_TRUE(constraint.accept(open).ok());
  EXPECT_FALSE(allowed('{'));
  EXPECT_FALSE(constraint.complete());
  for (const char c : std::string("thought\n")) {
    EXPECT_TRUE(allowed(c));
    EXPECT_FALSE(allowed('{'));
    ASSERT_TRUE(constraint.clone()->accept(c).ok());
    ASSERT_TRUE(constraint.accept(c).ok());
  }
  EXPECT_TRUE(allowed('x'));
  ASSERT_TRUE(constraint.accept('x').ok());
  ASSERT_TRUE(constraint.accept(close).ok());
  EXPECT_FALSE(allowed('x'));
  EXPECT_TRUE(allowed('{'));
}

// Arguments in tags: the schema decides what may stand between them.
TEST_F(ConstraintTest, TaggedArgumentsFollowTheSchema) {
  ReplyFormat format = format_of(ToolSyntax::kLaidOut);
  for (const CallLayout& layout : known_call_layouts()) {
    if (layout.lead.back() == "<tool_call>") format.layout = layout;
  }
  tools_.resize(1);
  const auto with = [&](const std::string& properties, const std::string& more = "") {
    tools_[0].parameters_json = R"({"type":"object","properties":{)" + properties + "}" + more + "}";
    return make(format, kRequired);
  };
  const auto call = [](const std::string& key, const std::string& value) {
    return "<tool_call>add<arg_key>" + key + "</arg_key><arg_value>" + value + "</arg_value></tool_call>";
  };
  auto made = with(R"("s":{"type":"string"},"e":{"enum":["a b",2]},"l":{"type":"string","maxLength":2})");
  expect(made, call("s", "any <b> text\n\"x\""), true);
  expect(made, call("e", "a b"), true);
  expect(made, call("e", "2"), true);
  expect(made, call("e", "3"), false);
  expect(made, call("l", "xy"), true);
  expect(made, call("l", "xyz"), false);
  expect(made, call("z", "1"), false);
  expect(made, "<tool_call>add</tool_call>", true);
  made = with(R"("r":{"$ref":"#/$defs/t"},"o":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}},)"
              R"("u":{"type":["integer","null"]},"p":{"type":"string","pattern":"[a-c]+"})",
              R"(,"$defs":{"t":{"type":"array","items":{"type":"integer"}}})");
  expect(made, call("r", "[1, 2]"), true);
  expect(made, call("r", "[\"1\"]"), false);
  expect(made, call("o", "{\"t\": [3]}"), true);
  expect(made, call("o", "{\"t\": 3}"), false);
  expect(made, call("u", "null"), true);
  expect(made, call("p", "abc"), true);
  expect(made, call("p", "abd"), false);
  made = with(R"("s":{"type":"string"})", R"(,"required":["s"],"additionalProperties":{"type":"integer"})");
  expect(made, "<tool_call>add</tool_call>", false);
  expect(made,
         "<tool_call>add<arg_key>s</arg_key><arg_value>x</arg_value><arg_key>more</arg_key><arg_value>5</arg_value>"
         "</tool_call>",
         true);
  for (const char* refused : {R"("s":{"type":"string","format":"date"})", R"("s":{"type":"string","pattern":".*"})",
                              R"("s":{"enum":["</arg_value>"]})", R"("a<b":{"type":"string"})"}) {
    const auto bad = with(refused);
    ASSERT_FALSE(bad.ok()) << refused;
    EXPECT_EQ(bad.error().param, "tools");
  }
}

TEST_F(ConstraintTest, PythonArgumentsFollowTheSchema) {
  ReplyFormat format = format_of(ToolSyntax::kLaidOut);
  for (const CallLayout& layout : known_call_layouts()) {
    if (layout.arguments == CallLayout::Arguments::kPython) format.layout = layout;
  }
  tools_.resize(1);
  tools_[0].parameters_json = R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"},
      "c":{"type":"array","items":{"type":"integer"}},"d":{"enum":["x",null]}},"required":["c"]})";
  const auto made = make(format, kRequired);
  const auto call = [](const std::string& inner) { return "<|tool_call_start|>[add(" + inner + ")]<|tool_call_end|>"; };
  for (const char* inner :
       {"c=[1, 2]", "a=\"it's\", c=[]", "b=True, c=[1]", "a=\"x\", b=False, c=[1], d=None", "c=[], d=\"x\""})
    expect(made, call(inner), true);
  for (const char* inner : {"", "a=\"x\"", "c=[\"x\"]", "b=true, c=[]", "c=[], b=True", "c=[], d=\"y\"", ", c=[]"})
    expect(made, call(inner), false);
  expect(made, "<|tool_call_start|>[add(c=[]), add(c=[1])]<|tool_call_end|>", true);
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
