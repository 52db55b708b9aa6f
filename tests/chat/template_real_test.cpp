// SmolLM2's own template, from its file, against transformers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "chat/jinja/program.h"
#include "chat/reply_format.h"
#include "chat_goldens.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

TEST(SmolLM2Template, RendersAsTransformers) {
  const char* path = std::getenv("HOCKET_TEST_SMOLLM2");
  if (!path) GTEST_SKIP() << "HOCKET_TEST_SMOLLM2 is not set";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto source = (*file)->metadata().string("tokenizer.chat_template");
  ASSERT_TRUE(source.ok()) << source.error().message;

  const testing::Golden& golden = testing::chat_goldens();
  const auto parsed = ChatTemplate::parse(std::string(*source), golden.bos, golden.eos);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto program = JinjaProgram::parse(std::string(*source), {});
  ASSERT_TRUE(program.ok());
  std::size_t n_compared = 0;
  for (const Json& entry : golden.json["templates"]) {
    if (entry["template"] != "smollm2-own") continue;
    EXPECT_EQ(testing::sha256(std::string(*source)), entry["sha256"].get<std::string>());
    for (const auto& [conversation, expected] : entry["results"].items()) {
      SCOPED_TRACE(conversation);
      if (conversation != "continue") {
        EXPECT_EQ(*(*program)->render(golden.python_variables(conversation), golden.now),
                  expected["text"].get<std::string>());
      }
      // Python's rendering loses the calls, which this template does not know.
      if (conversation.starts_with("tools")) continue;
      EXPECT_EQ(*(*parsed)->render(golden.input(conversation)), expected["text"].get<std::string>());
      ++n_compared;
    }
  }
  EXPECT_EQ(n_compared, 6u);

  const auto tokenizer = Tokenizer::load((*file)->metadata());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const ReplyFormat format = detect_reply_format(**parsed, **tokenizer);
  EXPECT_EQ(format.tools, ToolSyntax::kGeneric);
  EXPECT_EQ(format.think_open, "");
  EXPECT_FALSE(format.shows_special);
  EXPECT_FALSE((*parsed)->capabilities().tools);
}

}  // namespace
}  // namespace hocket
