// Arguments that are not JSON: what comes out is JSON of the right types.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/reply_format.h"
#include "chat/tool_syntax/call_writer.h"
#include "reply_reading.h"

namespace hocket {
namespace {

using testing::Reply;

ReplyFormat layout_with(CallLayout::Arguments arguments, const std::string& first_piece = {}) {
  ReplyFormat format;
  format.tools = ToolSyntax::kLaidOut;
  for (const CallLayout& layout : known_call_layouts()) {
    if (layout.arguments == arguments && (first_piece.empty() || layout.lead.back() == first_piece)) {
      format.layout = layout;
      break;
    }
  }
  return format;
}

std::vector<Tool> tools() {
  Tool f;
  f.name = "f";
  f.parameters_json = R"({"type":"object","properties":{
      "text":{"type":"string"}, "n":{"type":"integer"}, "x":{"type":"number"}, "on":{"type":"boolean"},
      "list":{"type":"array"}, "map":{"type":"object"}, "maybe":{"type":["string","null"]},
      "either":{"anyOf":[{"type":"string"},{"type":"integer"}]}, "pick":{"enum":["1", 2]},
      "named":{"$ref":"#/$defs/t"}, "free":{}}, "$defs":{"t":{"type":"string"}}})";
  return {f};
}

// The arguments of one call f, the same at every split; its JSON must be valid.
std::string arguments_of(const ReplyFormat& format, const std::string& text) {
  const Reply whole = testing::read_reply(format, {text}, false, tools());
  for (std::size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(testing::read_reply(format, {text.substr(0, at), text.substr(at)}, false, tools()), whole) << at;
  }
  EXPECT_EQ(testing::read_reply(format, testing::single_bytes(text), false, tools()), whole);
  EXPECT_EQ(whole.content, "") << text;
  if (whole.calls.size() != 1) {
    ADD_FAILURE() << whole.calls.size() << " calls in " << text;
    return {};
  }
  EXPECT_TRUE(parse_json(whole.calls[0].arguments).ok()) << whole.calls[0].arguments;
  return whole.calls[0].arguments;
}

TEST(CallValues, TagsTakeTheirTypesFromTheSchema) {
  const ReplyFormat format = layout_with(CallLayout::Arguments::kTagged, "<tool_call>");
  const auto value = [&](const std::string& key, const std::string& raw) {
    const std::string json = arguments_of(
        format, "<tool_call>f\n<arg_key>" + key + "</arg_key>\n<arg_value>" + raw + "</arg_value>\n</tool_call>");
    const auto parsed = parse_json(json);
    return parsed && parsed->contains(key) ? dump_json((*parsed)[key]) : json;
  };
  EXPECT_EQ(value("text", "5"), "\"5\"");
  EXPECT_EQ(value("text", " a\n\"b\" \\ </arg_valu \t"), "\" a\\n\\\"b\\\" \\\\ </arg_valu \\t\"");
  EXPECT_EQ(value("named", "true"), "\"true\"");
  EXPECT_EQ(value("n", "5"), "5");
  EXPECT_EQ(value("n", " 5\n"), "5");
  EXPECT_EQ(value("n", "five"), "\"five\"");
  EXPECT_EQ(value("x", "-1.5e3"), "-1500.0");
  EXPECT_EQ(value("on", "true"), "true");
  EXPECT_EQ(value("on", "False"), "false");
  EXPECT_EQ(value("list", "[1, \"a\"]"), "[1,\"a\"]");
  EXPECT_EQ(value("map", "{\"a\": {}}"), "{\"a\":{}}");
  EXPECT_EQ(value("maybe", "null"), "null");
  EXPECT_EQ(value("maybe", "no"), "\"no\"");
  EXPECT_EQ(value("maybe", "\"no\""), "\"\\\"no\\\"\"");
  EXPECT_EQ(value("either", "7"), "7");
  EXPECT_EQ(value("either", "x"), "\"x\"");
  EXPECT_EQ(value("pick", "1"), "\"1\"");
  EXPECT_EQ(value("pick", "2"), "2");
  EXPECT_EQ(value("free", "[1]"), "[1]");
  EXPECT_EQ(value("unknown", "words"), "\"words\"");
  EXPECT_EQ(value("text", ""), "\"\"");
}

TEST(CallValues, LineBreaksAroundAValueAreNotPartOfIt) {
  ReplyFormat format = layout_with(CallLayout::Arguments::kTagged, "<function=");
  format.layout.padded = true;
  const auto text = [&](const std::string& raw) {
    return arguments_of(
        format, "<tool_call>\n<function=f>\n<parameter=text>" + raw + "</parameter>\n</function>\n</tool_call>");
  };
  EXPECT_EQ(text("\nab\n"), "{\"text\": \"ab\"}");
  EXPECT_EQ(text("\n\nab\n\n"), "{\"text\": \"\\nab\\n\"}");
  EXPECT_EQ(text("ab"), "{\"text\": \"ab\"}");
  EXPECT_EQ(text("\n a\n\n b</p>\n"), "{\"text\": \" a\\n\\n b</p>\"}");
  // Without the outer tag, and without the inner closing one.
  EXPECT_EQ(arguments_of(format, "<function=f>\n<parameter=n>\n1\n</parameter>\n</function>"), "{\"n\": 1}");
  EXPECT_EQ(arguments_of(format, "<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</tool_call>"),
            "{\"n\": 1}");
}

TEST(CallValues, BrokenTagsLoseNothing) {
  const ReplyFormat format = layout_with(CallLayout::Arguments::kTagged, "<tool_call>");
  const auto read = [&](const std::string& text) {
    const Reply whole = testing::read_reply(format, {text}, false, tools());
    EXPECT_EQ(testing::read_reply(format, testing::single_bytes(text), false, tools()), whole) << text;
    return whole;
  };
  for (const std::string text : {"<tool_call>f and more", "<tool_call>", "<tool_call>g\n</tool_call>",
                                 "<tool_call>\n{\"name\": \"f\"}</tool_call>"}) {
    EXPECT_EQ(read(text), (Reply{text, "", {}})) << text;
  }
  const std::string first = "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n";
  EXPECT_EQ(read(first + "rubbish</tool_call>"), (Reply{"rubbish</tool_call>", "", {{"f", "{\"n\": 1}"}}}));
  EXPECT_EQ(read(first + "<arg_key>text</arg_key> x <arg_value>"),
            (Reply{"<arg_key>text</arg_key> x <arg_value>", "", {{"f", "{\"n\": 1}"}}}));
  // What was cut off does not look complete; what is complete is closed.
  EXPECT_EQ(read(first), (Reply{"", "", {{"f", "{\"n\": 1}"}}}));
  EXPECT_EQ(read(first + "<arg_key>te"), (Reply{"", "", {{"f", "{\"n\": 1, \"te"}}}));
  EXPECT_EQ(read(first + "<arg_key>text</arg_key>\n<arg_value>Zü</arg_"),
            (Reply{"", "", {{"f", "{\"n\": 1, \"text\": \"Zü</arg_"}}}));
}

TEST(CallValues, Gemma) {
  const ReplyFormat format = layout_with(CallLayout::Arguments::kGemma);
  const auto read = [&](const std::string& inner) {
    return arguments_of(format, "<|tool_call>call:f{" + inner + "}<tool_call|>");
  };
  EXPECT_EQ(read(""), "{}");
  EXPECT_EQ(read("text:<|\"|>a \"b\" <|\\ \n<|\"|>,n:3"), "{\"text\": \"a \\\"b\\\" <|\\\\ \\n\", \"n\": 3}");
  EXPECT_EQ(read("map:{a:[1,<|\"|>x<|\"|>,{b:null}],c:{}},on:true"),
            "{\"map\": {\"a\": [1, \"x\", {\"b\": null}], \"c\": {}}, \"on\": true}");
  EXPECT_EQ(read(" text : <|\"|>a<|\"|> , <|\"|>k<|\"|>:1"), "{\"text\": \"a\", \"k\": 1}");
  EXPECT_EQ(read("text:bare words,x:12:30"), "{\"text\": \"bare words\", \"x\": \"12:30\"}");
  EXPECT_EQ(read("text:\"j\\\"son\\u00e9\""), "{\"text\": \"j\\\"son\\u00e9\"}");
  const Reply cut = testing::read_reply(format, {"<|tool_call>call:f{text:<|\"|>ab<|"}, false, tools());
  EXPECT_EQ(cut, (Reply{"", "", {{"f", "{\"text\": \"ab<|"}}}));
}

TEST(CallValues, Python) {
  const ReplyFormat format = layout_with(CallLayout::Arguments::kPython);
  const auto read = [&](const std::string& inner) {
    return arguments_of(format, "<|tool_call_start|>[f(" + inner + ")]<|tool_call_end|>");
  };
  EXPECT_EQ(read(""), "{}");
  EXPECT_EQ(read("text='a', n=3, on=True, maybe=None"), "{\"text\": \"a\", \"n\": 3, \"on\": true, \"maybe\": null}");
  EXPECT_EQ(read("text=\"it's\", free='say \"x\"'"), "{\"text\": \"it's\", \"free\": \"say \\\"x\\\"\"}");
  // Templates print strings without escapes.
  EXPECT_EQ(read("text='it's a dog's life'"), "{\"text\": \"it's a dog's life\"}");
  EXPECT_EQ(read("text='\\n\\'\\x41\\d\\U0001f600'"), "{\"text\": \"\\n'\\u0041\\\\d😀\"}");
  EXPECT_EQ(read("list=[1, 'a', (2, 3)], map={'k': {'l': False}, \"m\": []},"),
            "{\"list\": [1, \"a\", [2, 3]], \"map\": {\"k\": {\"l\": false}, \"m\": []}}");
  EXPECT_EQ(read("map={\"a\": true, \"b\": null}"), "{\"map\": {\"a\": true, \"b\": null}}");
  const Reply two =
      testing::read_reply(format, {"<|tool_call_start|>[f(n=1), f(n=2)]<|tool_call_end|> ok"}, false, tools());
  EXPECT_EQ(two, (Reply{"ok", "", {{"f", "{\"n\": 1}"}, {"f", "{\"n\": 2}"}}}));
  const Reply half = testing::read_reply(format, {"<|tool_call_start|>[f(n=1), g(n=2)]"}, false, tools());
  EXPECT_EQ(half, (Reply{", g(n=2)]", "", {{"f", "{\"n\": 1}"}}}));
}

// Written and read again.
TEST(CallValues, RoundTrip) {
  const std::string arguments =
      R"({"text": "a \"quoted\" <b> 'x' line", "n": 3, "on": true, "maybe": null, "list": [1, "a", {"k": [true]}]})";
  for (const CallLayout& layout : known_call_layouts()) {
    ReplyFormat format;
    format.tools = ToolSyntax::kLaidOut;
    format.layout = layout;
    const std::string text = write_calls(layout, {{"", "f", arguments}});
    const auto parsed = parse_json(arguments_of(format, text));
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(dump_json(*parsed), dump_json(Json::parse(arguments))) << text;
  }
}

}  // namespace
}  // namespace hocket
