#include "tokenizer/grammar.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "support/byte_tokenizer.h"
#include "support/constraint_walk.h"
#include "tokenizer/compile_workers.h"

namespace hocket {
namespace {

struct Setup {
  std::unique_ptr<Tokenizer> tokenizer = fake::byte_tokenizer();
  std::size_t n_vocab = tokenizer->size();
  std::unique_ptr<GrammarCompiler> compiler = std::move(GrammarCompiler::create(*tokenizer, n_vocab)).value();
};
Setup& setup() {
  static Setup instance;
  return instance;
}

// Whether the constraint lets this text pass and then end.
bool accepts(const TokenConstraint& constraint, std::string_view text) {
  const auto copy = constraint.clone();
  std::vector<uint32_t> mask((setup().n_vocab + 31) / 32);
  const auto next = [&](TokenId id) {
    const auto masked = copy->allowed(mask);
    EXPECT_TRUE(masked.ok());
    const bool allowed = !*masked || (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
    EXPECT_EQ(copy->accept(id).ok(), allowed) << "mask and matcher disagree about " << id;
    return allowed;
  };
  for (const char c : text) {
    if (!next(static_cast<unsigned char>(c))) return false;
  }
  return next(fake::kImEnd);
}

std::unique_ptr<TokenConstraint> gbnf(std::string_view source) {
  auto made = setup().compiler->gbnf(source, "grammar");
  EXPECT_TRUE(made.ok()) << source << "\n" << (made ? "" : made.error().message);
  return made ? std::move(made).value() : nullptr;
}

struct Language {
  const char* grammar;
  std::vector<std::string> inside, outside;
};

TEST(Gbnf, AcceptsTheLanguageItDescribes) {
  const std::vector<Language> cases{
      {R"(root ::= "yes" | "no")", {"yes", "no"}, {"", "y", "yesno"}},
      {"root ::= item-list # the rest is a comment \"x\"\nitem-list ::= item (\", \" item)*\n\nitem ::= [a-c]+\n",
       {"a", "abc, b"},
       {"a,", "d"}},
      {R"(root ::= [^"\\\n]+)", {"abc", "ü€😀"}, {"a\"", "\\", "\n", ""}},
      {R"(root ::= [a\-\]^]*)", {"", "a-]^"}, {"b", "\\"}},
      {R"(root ::= [\x41-\x43] "\u00e9" "\U0001F600" "\t\"\\\[\]")", {"A\u00e9\U0001F600\t\"\\[]"}, {"D"}},
      {R"(root ::= ("a" | "b"){2,3} "c"{2} "d"{1,} "e"?)", {"abccd", "babccdde"}, {"accd", "aabbccd", "abcd", "abcc"}},
      {R"(root ::= "a"{0,2} "b"{0,0})", {"", "aa"}, {"aaa", "b"}},
      {"root ::= (\n  \"a\" # inside\n  | \"b\"\n)\n", {"a", "b"}, {"c"}},
      {"root ::= \"a\" |\n  \"b\"\n  | \"c\"\n", {"a", "b", "c"}, {"d"}},
      {"root ::= \"a\" rest\nrest ::= | \"b\" rest\n", {"a", "abbb"}, {"b", ""}},
      {"root ::= . .", {"ab", "ü😀"}, {"a", "abc"}},
      {"root ::= _x1\n_x1 ::= \"q\"", {"q"}, {"r"}},
      {"root ::= [-a] [a-]", {"--", "aa"}, {"b-"}},
      {"root ::= ((\"a\"+)?)* \"z\"", {"z", "aaz"}, {"a"}},
      {"root ::= \"(\" root \")\" | \"\"", {"", "(())"}, {"(", "())"}},
      {"r0 ::= \"x\"\nroot ::= r0 r1\r\nr1 ::= \"y\"", {"xy"}, {"x"}},
      {R"(root ::= [а-яё]{1,3})", {"ёжи", "я"}, {"ёжик", "z", ""}},
  };
  for (const Language& language : cases) {
    SCOPED_TRACE(language.grammar);
    const auto constraint = gbnf(language.grammar);
    ASSERT_TRUE(constraint);
    for (const std::string& text : language.inside) {
      EXPECT_TRUE(accepts(*constraint, text)) << text;
    }
    for (const std::string& text : language.outside) EXPECT_FALSE(accepts(*constraint, text)) << text;
  }
}

struct Refused {
  const char* grammar;
  const char* mentions;
};

TEST(Gbnf, ErrorsSayWhere) {
  const std::vector<Refused> cases{
      {"root ::= missing", "line 1, column 10: there is no rule \"missing\""},
      {"start ::= \"a\"", "no rule \"root\""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1"},
      {"root ::= \"a", "not closed"},
      {"root ::= [a", "not closed"},
      {"root ::= []", "empty"},
      {"root ::= [z-a]", "wrong order"},
      {"root ::= (\"a\"", "\")\" expected"},
      {"root ::= \"a\")", "column 13"},
      {"root = \"a\"", "\"::=\" expected"},
      {"root ::= \"\\q\"", "escape"},
      {"root ::= \"\\x4\"", "\\x needs 2"},
      {"root ::= \"\\ud800\"", "no character"},
      {"root ::= \"a\"{3,2}", "wrong order"},
      {"root ::= \"a\"{2001}", "2000"},
      {"root ::= \"a\"{99999999999}", "2000"},
      {"root ::= ((\"a\"{2000}){2000}){2000}", "written out"},
      {"root ::= root \"a\" | \"b\"", "left-recursive"},
      {"root ::= x\nx ::= \"\"? y\ny ::= (x | \"b\") \"c\"", "left-recursive"},
      {"root ::= <[12]>", "token references"},
      {"root ::= *", "expected"},
      {"", "empty"},
      {"root ::= \"\xff\"", "UTF-8"},
  };
  for (const Refused& item : cases) {
    SCOPED_TRACE(item.grammar);
    const auto made = setup().compiler->gbnf(item.grammar, "grammar");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(made.error().param, "grammar");
    EXPECT_NE(made.error().message.find(item.mentions), std::string::npos) << made.error().message;
  }
  std::string deep = "root ::= ";
  for (int i = 0; i < 100; ++i) deep += "(";
  EXPECT_FALSE(setup().compiler->gbnf(deep, "grammar").ok());
}

TEST(Gbnf, MutatedGrammarsAreAnErrorOrWork) {
  const uint32_t seed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string base = "root ::= \"a\" (b-1 | [^x-z\\n]{1,3})* # c\nb-1 ::= \"\\u00e9\" | . root?\n";
  const std::string bytes = "\"()[]{}|*+?^-\\:=,01ab\n# .<>!\xc3\xa9";
  int n_good = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = base;
    for (uint32_t n = random() % 3 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 2) {
        text[at] = bytes[random() % bytes.size()];
      } else {
        text.erase(at, 1 + random() % 4);
      }
      if (text.empty()) break;
    }
    auto made = setup().compiler->gbnf(text, "grammar");
    n_good += made.ok();
    if (made) {
      std::vector<uint32_t> mask((setup().n_vocab + 31) / 32);
      EXPECT_TRUE((*made)->allowed(mask).ok()) << text;
    } else {
      EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    }
  }
  EXPECT_GT(n_good, 5);
}

TEST(GrammarRegex, MatchesTheWholeText) {
  auto made = setup().compiler->regex("^(\\+|-)?[0-9]{1,3}(\\.[0-9]+)?$", "regex");
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const char* text : {"1", "-12.5", "+999"}) EXPECT_TRUE(accepts(**made, text)) << text;
  for (const char* text : {"", "1234", "1.", "a"}) EXPECT_FALSE(accepts(**made, text)) << text;
  for (const char* bad : {"(?<=a)b", "(a", "[a", "a{2001}", "\\bword", "(a)\\1", ""}) {
    const auto refused = setup().compiler->regex(bad, "regex");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().param, "regex");
  }
}

TEST(GrammarConstraint, FollowsTokensThatEndInsideACharacter) {
  const auto constraint = gbnf("root ::= \"é\" [а-я]");
  ASSERT_TRUE(constraint);
  ASSERT_TRUE(constraint->accept(0xC3).ok());
  EXPECT_FALSE(constraint->complete());
  std::vector<uint32_t> mask((setup().n_vocab + 31) / 32);
  ASSERT_TRUE(*constraint->allowed(mask));
  EXPECT_EQ(mask[0xA9 / 32], 1u << (0xA9 % 32)) << "only the second byte of é";
  ASSERT_TRUE(constraint->accept(0xA9).ok());
  ASSERT_TRUE(constraint->accept(0xD0).ok());
  ASSERT_TRUE(constraint->accept(0xB0).ok());
  EXPECT_TRUE(constraint->complete());
}

TEST(GrammarConstraint, ATokenOutsideTheMaskIsAnErrorAndNoMoreTokensFollow) {
  const auto constraint = gbnf("root ::= \"ab\"");
  ASSERT_TRUE(constraint);
  for (const TokenId id : {TokenId{'x'}, TokenId{-1}, TokenId{100'000}, fake::kImStart}) {
    const auto copy = constraint->clone();
    const auto accepted = copy->accept(id);
    ASSERT_FALSE(accepted.ok()) << id;
    EXPECT_EQ(accepted.error().code, ErrorCode::kInternal);
    EXPECT_FALSE(copy->accept('a').ok());
  }
  EXPECT_TRUE(accepts(*constraint, "ab")) << "clones are independent";
}

TEST(GrammarConstraint, ClonesGoTheirOwnWays) {
  const auto constraint = gbnf("root ::= \"a\" (\"b\" | \"c\")");
  ASSERT_TRUE(constraint && constraint->accept('a').ok());
  const auto other = constraint->clone();
  ASSERT_TRUE(constraint->accept('b').ok());
  EXPECT_TRUE(constraint->complete());
  EXPECT_FALSE(other->complete());
  ASSERT_TRUE(other->accept('c').ok());
  EXPECT_TRUE(other->complete());
}

TEST(GrammarConstraint, ControlTokensAreNeverPartOfAText) {
  const auto constraint = gbnf("root ::= .*");
  ASSERT_TRUE(constraint);
  std::vector<uint32_t> mask((setup().n_vocab + 31) / 32);
  ASSERT_TRUE(*constraint->allowed(mask));
  const auto allowed = [&](TokenId id) { return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0; };
  EXPECT_FALSE(allowed(fake::kImStart));
  EXPECT_FALSE(allowed(fake::kFimPrefix));
  EXPECT_TRUE(allowed(fake::kImEnd));
  EXPECT_TRUE(allowed('a'));
}

TEST(AfterMarker, FreeUntilTheMarkerThenStrict) {
  const auto constraint = constraint_after_marker(*setup().tokenizer, "</think>", gbnf("root ::= \"ok\""));
  std::vector<uint32_t> mask((setup().n_vocab + 31) / 32);
  for (const char c : std::string_view("thinking </thin </think")) {
    EXPECT_FALSE(*constraint->allowed(mask));
    ASSERT_TRUE(constraint->accept(c).ok());
  }
  const auto copy = constraint->clone();
  ASSERT_TRUE(constraint->accept('>').ok());
  EXPECT_TRUE(accepts(*constraint, "ok"));
  EXPECT_FALSE(accepts(*constraint, "no"));
  EXPECT_FALSE(constraint->complete());
  ASSERT_TRUE(copy->accept('x').ok());
  EXPECT_FALSE(*copy->allowed(mask)) << "the copy has not seen the marker";
}

constexpr const char* kOneInteger = R"({"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]})";

// What follows <tool_call>.
Structure hermes_call(const std::string& schema = kOneInteger) {
  std::vector<Structure> calls;
  for (const char* name : {"add", "sub"}) {
    calls.push_back(
        Structure::sequence({Structure::literal(std::string("\n{\"name\": \"") + name + "\", \"arguments\": "),
                             Structure::json(schema), Structure::literal("}\n</tool_call>")}));
  }
  return Structure::choice(std::move(calls));
}

TEST(StructureGrammar, FreeTextUntilATriggerThenTheSchema) {
  auto made = setup().compiler->structure(Structure::free({"<tool_call>"}, {hermes_call()}, false), "tools");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const std::string call = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\": 12}}\n</tool_call>";
  EXPECT_TRUE(accepts(**made, "just text, even with <b>"));
  EXPECT_TRUE(accepts(**made, "first " + call + " then " + call));
  EXPECT_FALSE(accepts(**made, "<tool_call>\n{\"name\": \"mul\""));
  EXPECT_FALSE(accepts(**made, "<tool_call>\n{\"name\": \"sub\", \"arguments\": {\"x\": \"1\""));
  EXPECT_FALSE(accepts(**made, call.substr(0, call.size() - 3)));
}

TEST(StructureGrammar, SequencesAreComplete) {
  auto made =
      setup().compiler->structure(Structure::sequence({Structure::literal("<tool_call>"), hermes_call()}), "tools");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const std::string call = "<tool_call>\n{\"name\": \"sub\", \"arguments\": {\"x\": -1}}\n</tool_call>";
  EXPECT_TRUE(accepts(**made, call));
  EXPECT_FALSE(accepts(**made, "text"));
  EXPECT_FALSE(accepts(**made, ""));
  EXPECT_FALSE(accepts(**made, call + call));
  const auto copy = (*made)->clone();
  for (const char c : call) ASSERT_TRUE(copy->accept(static_cast<unsigned char>(c)).ok());
  EXPECT_TRUE(copy->complete());
}

TEST(StructureGrammar, PartsCombine) {
  const Structure digits = Structure::of(Structure::Kind::kPattern, "[0-9]{2}");
  const Structure thought = Structure::sequence({Structure::literal("<a>"), Structure::until("</a>\n", {"</a>"})});
  const Structure grammar = Structure::of(Structure::Kind::kGbnf, "root ::= \"yes\" | \"no\"");
  auto made = setup().compiler->structure(
      Structure::sequence({Structure::any(thought), Structure::optional(digits), Structure::some(grammar)}), "tools");
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const char* text : {"yes", "12no", "<a>x<b></a>\nnoyes", "<a></a>\n<a>\n</a>\n34yes"})
    EXPECT_TRUE(accepts(**made, text)) << text;
  for (const char* text : {"", "1yes", "<a>x</a>yes", "yes12"}) EXPECT_FALSE(accepts(**made, text)) << text;
}

TEST(StructureGrammar, GemmaNotation) {
  const auto object = [](const std::string& schema) {
    return setup().compiler->structure(Structure::of(Structure::Kind::kGemma, schema), "tools");
  };
  auto made = object(R"({"type":"object","properties":{"city":{"type":"string"},"n":{"type":"integer"},
      "o":{"type":"object","properties":{"list":{"type":"array","items":{"enum":["a","[ \n\r\t]*"]}}}}},
      "required":["city"]})");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(accepts(**made, "{city:<|\"|>Z\"\n<|\"|>,n:3,o:{list:[<|\"|>a<|\"|>,<|\"|>[ \n\r\t]*<|\"|>]}}"));
  EXPECT_FALSE(accepts(**made, "{ city:"));
  EXPECT_FALSE(accepts(**made, "{city:\"Z"));
  EXPECT_FALSE(accepts(**made, "{n:3}"));
  for (const char* schema : {R"({"type":"object","properties":{"a":{"type":"string","minLength":2}}})",
                             R"({"type":"object","properties":{"a":{"type":"string","pattern":"x"}}})",
                             R"({"type":"object","properties":{"a:b":{"type":"string"}}})",
                             R"({"type":"object","properties":{"a":{"enum":["<|\"|>"]}}})"}) {
    EXPECT_FALSE(object(schema).ok()) << schema;
  }
}

TEST(StructureGrammar, ControlTokensOfTheLiteralsAreUsable) {
  auto made = setup().compiler->structure(
      Structure::sequence({Structure::literal("<|fim_prefix|>"), Structure::json(R"({"type":"object"})")}), "tools");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE((*made)->clone()->accept(fake::kFimSuffix).ok());
  ASSERT_TRUE((*made)->accept(fake::kFimPrefix).ok());
  EXPECT_TRUE((*made)->accept('{').ok());
}

TEST(StructureGrammar, BadPartsAreRefused) {
  EXPECT_FALSE(setup().compiler->structure(Structure::free({"", "x"}, {hermes_call()}, false), "tools").ok());
  EXPECT_FALSE(setup().compiler->structure(Structure::sequence({}), "tools").ok());
  const auto made = setup().compiler->structure(hermes_call(R"({"type":"array","uniqueItems":true})"), "tools");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().param, "tools");
  EXPECT_NE(made.error().message.find("uniqueItems"), std::string::npos);
}

TEST(GrammarCompiler, ManyThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 5; ++i) {
        auto made = setup().compiler->gbnf("root ::= \"" + std::to_string((t + i) % 3) + "\"", "grammar");
        EXPECT_TRUE(made.ok());
        if (made) {
          EXPECT_TRUE(accepts(**made, std::to_string((t + i) % 3)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GrammarCompiler, TooShortATimeIsAnError) {
  GrammarLimits limits;
  limits.max_compile_ms = 0;
  auto compiler = GrammarCompiler::create(*setup().tokenizer, setup().n_vocab, limits);
  ASSERT_TRUE(compiler.ok());
  const auto made = (*compiler)->gbnf("root ::= [a-z]{1,500} \"x\"", "grammar");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().param, "grammar");
}

TEST(CompileWorkers, LateJobsKeepTheirSlot) {
  std::atomic<bool> release{false};
  std::atomic<int> n_done{0};
  {
    CompileWorkers workers(1);
    const auto late = workers.run(
        [&] {
          while (!release) std::this_thread::yield();
          ++n_done;
        },
        20);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
    const auto busy = workers.run([&] { ++n_done; }, 20);
    ASSERT_FALSE(busy.ok());
    EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
    release = true;
    EXPECT_TRUE(workers.run([&] { ++n_done; }, 10'000).ok());
  }
  EXPECT_EQ(n_done, 2);
}

}  // namespace
}  // namespace hocket
