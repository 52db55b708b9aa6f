// Answers of gpt-oss: messages on channels.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chat/reply_format.h"
#include "reply_reading.h"

namespace hocket {
namespace {

using testing::Reply;

std::vector<Tool> tools() {
  std::vector<Tool> out(2);
  out[0].name = "get_weather";
  out[1].name = "add";
  return out;
}

void expect_reply(const std::string& text, const Reply& expected) {
  SCOPED_TRACE(text);
  ReplyFormat format;
  format.tools = ToolSyntax::kHarmony;
  EXPECT_EQ(testing::read_reply(format, {text}, false, tools()), expected);
  EXPECT_EQ(testing::read_reply(format, testing::single_bytes(text), false, tools()), expected);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    ASSERT_EQ(testing::read_reply(format, {text.substr(0, at), text.substr(at)}, false, tools()), expected) << at;
  }
}

const std::string kAnalysis = "<|channel|>analysis<|message|>";
const std::string kFinal = "<|channel|>final<|message|>";
const std::string kCommentary = "<|channel|>commentary<|message|>";
const std::string kNext = "<|end|><|start|>assistant";

TEST(Harmony, ChannelsAreReasoningAndContent) {
  expect_reply(kFinal + "Hello.", {"Hello.", "", {}});
  expect_reply(kAnalysis + "Hm, <b> | x.\n" + kNext + kFinal + " Hi.\n", {" Hi.\n", "Hm, <b> | x.\n", {}});
  expect_reply(kAnalysis + "One." + kNext + kAnalysis + "Two." + kNext + kFinal + "A" + kNext + kFinal + "B",
               {"A\nB", "One.\nTwo.", {}});
  expect_reply("<|channel|>final <|constrain|>json<|message|>{\"a\": 1}<|return|>", {"{\"a\": 1}", "", {}});
  expect_reply(kAnalysis + "x" + kNext + kCommentary + "I shall look.<|end|>", {"I shall look.", "x", {}});
  expect_reply(kAnalysis + "x<|channel|>final<|message|>y", {"y", "x", {}});
}

TEST(Harmony, Calls) {
  const Reply one{"", "x", {{"add", "{\"a\": [1, {}]}"}}};
  const std::string arguments = "{\"a\": [1, {}]}";
  for (const std::string header :
       {"<|channel|>commentary to=functions.add <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.add<|message|>", " to=functions.add<|channel|>commentary json<|message|>",
        "<|channel|>commentary to=functions.add code<|message|>", "<|channel|>analysis to=functions.add<|message|>",
        "<|channel|>commentary to=add <|constrain|>json<|message|>"}) {
    expect_reply(kAnalysis + "x" + kNext + header + arguments, one);
    expect_reply(kAnalysis + "x" + kNext + header + arguments + "<|call|>", one);
  }
  expect_reply(
      "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}<|call|>"
      "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{}<|call|>",
      {"", "", {{"add", "{\"a\": 1}"}, {"get_weather", "{}"}}});
  expect_reply("<|channel|>commentary to=functions.add <|constrain|>json<|message|><|call|>",
               {"", "", {{"add", "{}"}}});
  expect_reply("<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": \"x\ny\"}",
               {"", "", {{"add", "{\"a\": \"x\\ny\"}"}}});
}

TEST(Harmony, WhatIsNoCallStaysContent) {
  for (const std::string text : {"Just text.", " text <|x|> y", "<|channel|>anal", "<|channel", "to=me or not",
                                 "<|channel|>commentary to=functions.other<|message|>{}",
                                 "<|channel|>commentary to=functions.add code<|message|>print(1)"}) {
    expect_reply(text, {text, "", {}});
  }
  expect_reply("<|channel|>" + std::string(700, 'x') + "<|message|>",
               {"<|channel|>" + std::string(700, 'x') + "<|message|>", "", {}});
  expect_reply("<|channel|>commentary to=functions.add<|message|>{\"a\": 1} and more",
               {"andmore", "", {{"add", "{\"a\": 1}"}}});
}

TEST(Harmony, CutOff) {
  expect_reply(kAnalysis + "Half a tho", {"", "Half a tho", {}});
  expect_reply(kAnalysis + "x<|en", {"", "x<|en", {}});
  expect_reply(kAnalysis + "x" + kNext + "<|channel|>fin", {"", "x", {}});
  expect_reply("<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": \"x",
               {"", "", {{"add", "{\"a\": \"x"}}});
  expect_reply("<|channel|>commentary to=functions.add <|constrain|>json<|message|>", {"", "", {{"add", ""}}});
  expect_reply("", {"", "", {}});
}

}  // namespace
}  // namespace hocket
