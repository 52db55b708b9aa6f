// Answers as models write them, whole and in pieces.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/reply_format.h"
#include "reply_reading.h"

namespace hocket {
namespace {

using testing::add;
using testing::Call;
using testing::Reply;
using testing::single_bytes;

std::vector<Tool> tools() {
  std::vector<Tool> out(2);
  out[0].name = "get_weather";
  out[1].name = "add";
  return out;
}

ReplyFormat format_of(ToolSyntax syntax, bool thinks = false) {
  ReplyFormat format;
  format.tools = syntax;
  if (thinks) {
    format.think_open = "<think>";
    format.think_close = "</think>";
  }
  return format;
}

Reply parse(const ReplyFormat& format, const std::vector<std::string>& pieces, bool starts_in_thinking = false,
            const std::vector<Tool>& offered = tools()) {
  return testing::read_reply(format, pieces, starts_in_thinking, offered);
}

// The same whole and byte by byte.
void expect_reply(const ReplyFormat& format, const std::string& text, const Reply& expected,
                  bool starts_in_thinking = false) {
  SCOPED_TRACE(text);
  EXPECT_EQ(parse(format, {text}, starts_in_thinking), expected);
  EXPECT_EQ(parse(format, single_bytes(text), starts_in_thinking), expected);
}

TEST(ReplyParser, HermesCalls) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  expect_reply(format, "Hello, world. ", {"Hello, world. ", "", {}});
  expect_reply(format, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, {}]}}\n</tool_call>",
               {"", "", {{"add", "{\"a\": 1, \"b\": [2, {}]}"}}});
  expect_reply(
      format,
      "Let me see.\n\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>\n"
      "<tool_call>{\"arguments\": {\"city\": \"Z\xc3\xbcrich </tool_call> }\"}, \"name\": "
      "\"get_weather\"}</tool_call>\nDone.",
      {"Let me see.Done.", "", {{"add", "{}"}, {"get_weather", "{\"city\": \"Z\xc3\xbcrich </tool_call> }\"}"}}});
  // Arguments as a text of JSON, as null, or not at all.
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
               {"", "", {{"add", "{\"a\": 1}"}}});
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": null}</tool_call>", {"", "", {{"add", "{}"}}});
  expect_reply(format, "<tool_call>{\"name\": \"add\"}</tool_call>", {"", "", {{"add", "{}"}}});
  // A raw line break inside a string is no JSON; the client gets some.
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"x\ny\"}}</tool_call>",
               {"", "", {{"add", "{\"a\": \"x\\ny\"}"}}});
  // Without the closing tag.
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}} and so on",
               {"and so on", "", {{"add", "{\"a\": 1}"}}});
}

TEST(ReplyParser, BrokenCallsAreContent) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  for (const std::string text :
       {"<tool_call>", "<tool_c", "a <tool_call> b",
        "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": 3}</tool_call>",
        "<tool_call>{}</tool_call>", "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": 5}</tool_call>", "  <tool_call>\n[1]",
        "<tool_call><tool_call><tool_call>", "<tool_call>{\"name\": \"ad",
        "<tool_call>{\"arguments\": {\"a\": ", "<tool_call>{'name': 'add'}</tool_call> \n"}) {
    expect_reply(format, text, {text, "", {}});
  }
  expect_reply(format, "<tool_call>\n <tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>",
               {"<tool_call>", "", {{"add", "{}"}}});
}

TEST(ReplyParser, UnfinishedCallsAreKept) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes);
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"x", {"", "", {{"add", "{\"a\": \"x"}}});
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"argu", {"", "", {{"add", ""}}});
  expect_reply(format, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}", {"", "", {{"add", "{\"a\": 1}"}}});
}

TEST(ReplyParser, ArgumentsStreamAsTheyCome) {
  const auto parser = ReplyParser::create(format_of(ToolSyntax::kHermes), tools(), false);
  EXPECT_TRUE(parser->push("<tool_call>{\"name\": \"add\", \"arguments\": ").empty());
  auto deltas = parser->push("{\"a\": 1");
  ASSERT_EQ(deltas.size(), 2u);
  EXPECT_EQ(deltas[0].kind, ReplyDelta::Kind::kToolCallStart);
  EXPECT_EQ(deltas[0].call_name, "add");
  EXPECT_EQ(deltas[0].call_id.substr(0, 5), "call_");
  EXPECT_EQ(deltas[1].text, "{\"a\": 1");
  deltas = parser->push("23, ");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].kind, ReplyDelta::Kind::kToolCallArguments);
  EXPECT_EQ(deltas[0].text, "23, ");
  // Content that may be the beginning of a tag waits; other content does not.
  deltas = parser->push("\"b\": 2}}</tool_call>Text <tool");
  ASSERT_EQ(deltas.size(), 2u);
  EXPECT_EQ(deltas[1].text, "Text");
  deltas = parser->push("box>");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, " <toolbox>");
}

TEST(ReplyParser, Llama3Calls) {
  const ReplyFormat format = format_of(ToolSyntax::kLlama3);
  const Reply one{"", "", {{"add", "{\"a\": 1}"}}};
  expect_reply(format, "{\"name\": \"add\", \"parameters\": {\"a\": 1}}", one);
  expect_reply(format, "\n <|python_tag|>{\"name\": \"add\", \"parameters\": {\"a\": 1}}", one);
  expect_reply(format, "{\"type\": \"function\", \"name\": \"add\", \"parameters\": {\"a\": 1}}", one);
  expect_reply(format, "{\"name\": \"add\", \"parameters\": {\"a\": 1}}; {\"name\": \"add\", \"parameters\": {}}",
               {"", "", {{"add", "{\"a\": 1}"}, {"add", "{}"}}});
  expect_reply(format, "{\"name\": \"Bob\", \"parameters\": {}} is JSON",
               {"{\"name\": \"Bob\", \"parameters\": {}} is JSON", "", {}});
  expect_reply(format, " {\"a\": 1}", {" {\"a\": 1}", "", {}});
  expect_reply(format, "Use {\"name\": \"add\", \"parameters\": {}}",
               {"Use {\"name\": \"add\", \"parameters\": {}}", "", {}});
}

TEST(ReplyParser, MistralCalls) {
  for (const ToolSyntax syntax : {ToolSyntax::kMistral, ToolSyntax::kMistralNamed}) {
    const ReplyFormat format = format_of(syntax);
    expect_reply(format,
                 "Yes. [TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"id\": \"x\"}, {\"name\": "
                 "\"get_weather\", \"arguments\": {}}]",
                 {"Yes.", "", {{"add", "{\"a\": 1}"}, {"get_weather", "{}"}}});
    expect_reply(format, "[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]get_weather[CALL_ID]abc123XYZ[ARGS]{\"b\": 2}",
                 {"", "", {{"add", "{\"a\": 1}"}, {"get_weather", "{\"b\": 2}"}}});
    expect_reply(format, "[TOOL_CALLS]add{\"a\": 1}", {"", "", {{"add", "{\"a\": 1}"}}});
    for (const std::string text :
         {"[TOOL_CALLS]", "[TOOL_CALLS] ", "[TOOL_CALLS]nothing[ARGS]{}", "[TOOL_CALLS]add[ARG", "[TOOL_CALLS][]"}) {
      expect_reply(format, text, {text, "", {}});
    }
  }
  const auto parser = ReplyParser::create(format_of(ToolSyntax::kMistral), tools(), false);
  EXPECT_EQ(parser->push("[TOOL_CALLS]add[ARGS]{}").at(0).call_id.size(), 9u);
}

TEST(ReplyParser, FunctionaryCalls) {
  const ReplyFormat format = format_of(ToolSyntax::kFunctionary);
  expect_reply(format, "<function=add>{\"a\": 1}</function> <function=get_weather>{}</function>",
               {"", "", {{"add", "{\"a\": 1}"}, {"get_weather", "{}"}}});
  for (const std::string text :
       {"<function=add", "<function=add>", "<function=none>{}</function>", "<function=add>x</function>"}) {
    // A name with nothing behind it is a call that was cut off.
    if (text == "<function=add>")
      expect_reply(format, text, {"", "", {{"add", ""}}});
    else
      expect_reply(format, text, {text, "", {}});
  }
  const ReplyFormat recipient = format_of(ToolSyntax::kRecipient);
  expect_reply(recipient, "all\nHello", {"Hello", "", {}});
  expect_reply(recipient, "add\n{\"a\": 1}", {"", "", {{"add", "{\"a\": 1}"}}});
  expect_reply(recipient, "all\nHello\n>>>add\n{\"a\": 1}>>>get_weather\n{}",
               {"Hello", "", {{"add", "{\"a\": 1}"}, {"get_weather", "{}"}}});
  expect_reply(recipient, "Hello >>> you", {"Hello >>> you", "", {}});
}

TEST(ReplyParser, Thinking) {
  const ReplyFormat format = format_of(ToolSyntax::kHermes, true);
  expect_reply(format, "<think>\nHm.\n\n</think>\n\nHi.\n", {"Hi.\n", "Hm.", {}});
  expect_reply(format, "Hm.\n</think>\n\nHi.", {"Hi.", "Hm.", {}}, true);
  expect_reply(format, "<think>\nHm.\n</think>\n\nHi.", {"Hi.", "Hm.", {}}, true);
  expect_reply(format, "<think>\n\n</think>\n\nHi.", {"Hi.", "", {}});
  expect_reply(format, "Hi <think>no</think>", {"Hi <think>no</think>", "", {}});
  expect_reply(format, "<think>a </thin b", {"", "a </thin b", {}});
  expect_reply(format, "<think>a </thi", {"", "a </thi", {}});
  expect_reply(format, "  plain", {"  plain", "", {}});
  expect_reply(format, "<thi", {"<thi", "", {}});
  expect_reply(format, "<think>x <tool_call> y</think><tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>",
               {"", "x <tool_call> y", {{"add", "{}"}}});
}

TEST(ReplyParser, WithoutToolsTagsAreText) {
  const std::string text = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call> ";
  EXPECT_EQ(parse(format_of(ToolSyntax::kHermes), single_bytes(text), false, {}).content, text);
}

// Whatever the text, the pieces in which it comes change nothing, and what is not a tag is not lost.
TEST(ReplyParser, PiecesDoNotMatter) {
  const unsigned seed = 41;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> parts{"<tool_call>",
                                       "</tool_call>",
                                       "{\"name\": \"add\", ",
                                       "\"arguments\": {\"a\": \"#\"}",
                                       "}",
                                       "{",
                                       "\"",
                                       "[TOOL_CALLS]",
                                       "[",
                                       "]",
                                       "add",
                                       "[ARGS]",
                                       "{\"a\": [1, \"#\"]}",
                                       "<function=",
                                       ">",
                                       "add>",
                                       "</function>",
                                       ">>>",
                                       "add\n",
                                       "all\n",
                                       "<think>",
                                       "</think>",
                                       "#",
                                       " ",
                                       "\n",
                                       "text#",
                                       ",",
                                       ";",
                                       "<|python_tag|>",
                                       "{\"name\": \"add\", \"parameters\": {\"x\": \"#\"}}",
                                       "<",
                                       "<t",
                                       "[TOOL",
                                       "\\",
                                       "\xc3\xa4#",
                                       "null",
                                       "1",
                                       "<function=add>",
                                       "<parameter=a#>",
                                       "</parameter>",
                                       "<tool_call>add",
                                       "<arg_key>",
                                       "k#",
                                       "</arg_key>",
                                       "<arg_value>",
                                       "</arg_value>",
                                       "<|tool_calls_section_begin|>",
                                       "<|tool_call_begin|>functions.add:0",
                                       "<|tool_call_argument_begin|>",
                                       "<|tool_call_end|>",
                                       "<|tool_calls_section_end|>",
                                       "<|tool_call>call:add",
                                       "{a:",
                                       "<|\"|>",
                                       "<tool_call|>",
                                       "<|tool_call_start|>[",
                                       "add(",
                                       "a='#',",
                                       "(",
                                       ")",
                                       "'",
                                       "=",
                                       ":",
                                       "<|tool_call_end|>"};
  std::vector<ReplyFormat> laid_out;
  for (const CallLayout& layout : known_call_layouts()) {
    laid_out.push_back(format_of(ToolSyntax::kLaidOut));
    laid_out.back().layout = layout;
  }
  const std::vector<ToolSyntax> syntaxes{ToolSyntax::kGeneric,  ToolSyntax::kHermes,       ToolSyntax::kLlama3,
                                         ToolSyntax::kMistral,  ToolSyntax::kMistralNamed, ToolSyntax::kFunctionary,
                                         ToolSyntax::kRecipient};
  for (int round = 0; round < 80'000; ++round) {
    std::string text;
    for (std::size_t n = random() % 14; n > 0; --n) text += parts[random() % parts.size()];
    ReplyFormat format = format_of(syntaxes[random() % syntaxes.size()], random() % 3 == 0);
    if (random() % 2 == 0) format = laid_out[random() % laid_out.size()];
    const bool in_thinking = random() % 2 == 0;
    const Reply whole = parse(format, {text}, in_thinking);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 6;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    ASSERT_EQ(parse(format, pieces, in_thinking), whole) << text << " syntax " << static_cast<int>(format.tools);
    std::string all = whole.content + whole.reasoning;
    for (const Call& call : whole.calls) all += call.arguments;
    ASSERT_EQ(std::count(all.begin(), all.end(), '#'), std::count(text.begin(), text.end(), '#')) << text;
  }
}

// Harmony drops its headers, so that only the first half of the above holds.
TEST(ReplyParser, PiecesOfHarmonyDoNotMatter) {
  const unsigned seed = 42;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> parts{"<|channel|>", "analysis", "final",     "commentary", " to=functions.add",
                                       "<|message|>", "<|end|>",  "<|start|>", "assistant",  "<|call|>",
                                       "{\"a\": 1}",  "text",     " ",         "<|",         "}",
                                       "\n",          "to=",      "<|return|>"};
  for (int round = 0; round < 40'000; ++round) {
    std::string text;
    for (std::size_t n = random() % 16; n > 0; --n) text += parts[random() % parts.size()];
    const ReplyFormat format = format_of(ToolSyntax::kHarmony);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 6;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    ASSERT_EQ(parse(format, pieces), parse(format, {text})) << text;
  }
}

TEST(ReplyParser, LongAnswersStayLinear) {
  const auto parser = ReplyParser::create(format_of(ToolSyntax::kHermes, true), tools(), false);
  Reply reply;
  std::string value(2'000'000, 'x');
  add(reply, parser->push("<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \""));
  for (std::size_t at = 0; at < value.size(); at += 4) add(reply, parser->push(value.substr(at, 4)));
  add(reply, parser->push("\"}}</tool_call>"));
  for (std::size_t at = 0; at < value.size(); at += 4) add(reply, parser->push("<tool"));
  add(reply, parser->finish());
  EXPECT_EQ(reply.calls.at(0).arguments.size(), value.size() + 9);
  EXPECT_EQ(reply.content.size(), value.size() / 4 * 5);
}

TEST(ReplyParser, CallIdsDiffer) {
  const std::string id = make_tool_call_id();
  EXPECT_EQ(id.size(), 29u);
  EXPECT_TRUE(id.starts_with("call_"));
  EXPECT_NE(id, make_tool_call_id());
}

}  // namespace
}  // namespace hocket
