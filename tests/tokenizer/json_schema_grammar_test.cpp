// JSON schemas as constraints: what random walks through the masks write must parse and validate.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/byte_tokenizer.h"
#include "support/constraint_walk.h"
#include "support/json_schema_validator.h"
#include "tokenizer/grammar.h"

namespace hocket {
namespace {

struct Setup {
  std::unique_ptr<Tokenizer> tokenizer = fake::byte_tokenizer();
  std::size_t n_vocab = tokenizer->size() + 27;  // rows are wider than the vocabulary
  std::unique_ptr<GrammarCompiler> compiler = std::move(GrammarCompiler::create(*tokenizer, n_vocab)).value();
};
Setup& setup() {
  static Setup instance;
  return instance;
}

const std::vector<std::string> kAccepted{
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]})",
    R"({"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"},"c":{"type":"number"}}})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]})",
    R"({"type":"object"})",
    R"({"type":"object","additionalProperties":{"type":"integer"}})",
    R"({"type":"object","properties":{"ab":{"type":"string"}},"additionalProperties":{"type":"integer"}})",
    R"({"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false})",
    R"({"type":"array"})",
    R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":4})",
    R"({"type":"array","items":{"enum":["x","y"]},"minItems":3})",
    R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false})",
    R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":{"type":"null"}})",
    R"({"type":"array","prefixItems":[{"type":"boolean"}],"minItems":3})",
    R"({"type":"string","minLength":2,"maxLength":5})",
    R"({"type":"string","minLength":3})",
    R"({"type":"string","maxLength":4})",
    R"({"type":"string","maxLength":0})",
    R"({"type":"string","pattern":"^[a-z]{2,4}-[0-9]+$"})",
    R"({"type":"string","pattern":"ab+"})",
    R"({"type":"string","pattern":"^(foo|bar)?\\d{1,3}$"})",
    R"({"type":"integer","minimum":-5,"maximum":17})",
    R"({"type":"integer","exclusiveMinimum":99})",
    R"({"type":"integer","exclusiveMaximum":-99})",
    R"({"type":"integer","minimum":0})",
    R"({"type":"integer","minimum":3.0,"exclusiveMaximum":1000000})",
    R"({"type":"number","minimum":0,"maximum":1})",
    R"({"type":"number","minimum":-2.5,"maximum":3.75})",
    R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
    R"({"type":"number","exclusiveMinimum":-0.5})",
    R"({"type":"number","maximum":-10})",
    R"({"enum":["a","b\"c",3,null,true,{"k":[1,2]},0.5,"ü"]})",
    R"({"const":"fixed / text"})",
    R"({"type":"string","enum":["a","b"]})",
    R"({"anyOf":[{"type":"string"},{"type":"null"}]})",
    R"({"oneOf":[{"type":"integer"},{"type":"boolean"}]})",
    R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
                 {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k"]}]})",
    R"({"allOf":[{"type":"integer"}]})",
    R"({"allOf":[{"type":"string"},{"minLength":1}]})",
    R"({"allOf":[{"type":["integer","string"],"minimum":2},{"type":"number","maximum":9},{"minimum":4}]})",
    R"({"allOf":[{"enum":["a","b",1]},{"enum":["b",1,2]}]})",
    R"({"allOf":[{"$ref":"#/$defs/base"},{"properties":{"n":{"maximum":9},"t":{"type":"boolean"}},"required":["t"]}],
        "$defs":{"base":{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"const":"x"}},
        "required":["n"]}}})",
    R"({"type":"object","properties":{"a":{"type":"null"}},"required":["a"],
        "allOf":[{"properties":{"b":{"type":"boolean"}},"required":["b"]}]})",
    R"({"type":"array","items":{"type":"integer"},"allOf":[{"items":{"minimum":3,"maximum":7}},{"maxItems":3}]})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"minProperties":2,
        "additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"],
        "minProperties":1,"maxProperties":2})",
    R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":3})",
    R"({"type":"object","patternProperties":{"^[a-c]{1,3}$":{"type":"integer","minimum":5}},"minProperties":1})",
    R"({"type":"object","patternProperties":{"^x_[a-z]+$":{"type":"boolean"}},"additionalProperties":false})",
    R"({"type":"object","propertyNames":{"pattern":"^[a-z]{2}$"},"additionalProperties":{"type":"null"}})",
    R"({"type":"object","propertyNames":{"enum":["p","q"]}})",
    R"({"propertyNames":{"minLength":2,"maxLength":4},"additionalProperties":{"type":"null"}})",
    R"({"type":"integer","multipleOf":7})",
    R"({"type":"array","items":{"type":"integer","multipleOf":100},"minItems":2,"maxItems":3})",
    R"({"type":"integer","multipleOf":5000,"minimum":1,"maximum":30000})",
    R"({"type":"integer","multipleOf":25,"minimum":-40,"exclusiveMaximum":150})",
    R"({"oneOf":[{"type":"integer","maximum":3},{"type":"integer","exclusiveMinimum":3}]})",
    R"({"oneOf":[{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},
                 {"type":"object","properties":{"b":{"type":"null"}},"additionalProperties":false}]})",
    R"({"type":["integer","null"]})",
    R"({"type":["string","array"],"maxLength":3,"items":{"type":"boolean"}})",
    R"({})",
    R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"boolean"},"unused":{"not":{}}}})",
    R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})",
    R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},
        "kids":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["v","kids"]}}})",
    R"({"type":"string","format":"date"})",
    R"({"type":"string","format":"time"})",
    R"({"type":"string","format":"date-time"})",
    R"({"type":"string","format":"uuid"})",
    R"({"type":"string","format":"ipv4"})",
    R"({"type":"string","format":"ipv6"})",
    R"({"type":"string","format":"email"})",
    R"({"type":"string","format":"hostname"})",
    R"({"type":"string","format":"duration"})",
    R"({"type":"string","format":"uri"})",
    R"({"title":"t","description":"d","type":"object","properties":{"x/y~z":{"type":"integer","default":3,"examples":[1]},
        "ü\"":{"type":"string","maxLength":1}},"required":["x/y~z","ü\""]})",
};

TEST(JsonSchemaGrammar, EveryFinishedTextParsesAndValidates) {
  const uint32_t seed = 99;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const std::string& schema : kAccepted) {
    SCOPED_TRACE(schema);
    auto made = setup().compiler->json_schema(schema, "schema");
    ASSERT_TRUE(made.ok()) << made.error().message;
    const fake::SchemaValidator validator(nlohmann::json::parse(schema));
    int n_finished = 0;
    for (int round = 0; round < 40; ++round) {
      const auto constraint = (*made)->clone();
      const auto text = fake::random_walk(*setup().tokenizer, setup().n_vocab, *constraint, random);
      if (!text) continue;
      ++n_finished;
      const auto value = nlohmann::json::parse(*text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << *text;
      ASSERT_EQ(validator.check(value), "") << *text;
    }
    EXPECT_GE(n_finished, 20);
  }
}

TEST(JsonSchemaGrammar, JsonObjectIsAnObject) {
  std::mt19937 random(5);
  auto made = setup().compiler->json_object();
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::size_t longest = 0;
  for (int round = 0; round < 100; ++round) {
    const auto text = fake::random_walk(*setup().tokenizer, setup().n_vocab, *(*made)->clone(), random);
    if (!text) continue;
    ASSERT_TRUE(nlohmann::json::parse(*text, nullptr, false).is_object()) << *text;
    longest = std::max(longest, text->size());
  }
  EXPECT_GT(longest, 20u);
}

struct Refused {
  const char* schema;
  const char* mentions;
};

TEST(JsonSchemaGrammar, WhatCannotBeEnforcedIsRefusedByName) {
  const std::vector<Refused> cases{
      {R"([])", "object"},
      {R"(true)", "object"},
      {R"({"type":"array","uniqueItems":true})", "uniqueItems"},
      {R"({"type":"array","contains":{}})", "contains"},
      {R"({"type":"integer","multipleOf":3,"minimum":0})", "multipleOf"},
      {R"({"type":"integer","multipleOf":3,"minimum":1,"maximum":2})", "multipleOf"},
      {R"({"type":"integer","multipleOf":5000})", "multipleOf"},
      {R"({"type":["integer","null"],"multipleOf":5})", "multipleOf"},
      {R"({"type":"number","multipleOf":0.1})", "multipleOf"},
      {R"({"not":{"type":"string"}})", "not"},
      {R"({"type":"object","if":{},"then":{}})", "if"},
      {R"({"type":"object","dependentRequired":{}})", "dependentRequired"},
      {R"({"type":"object","patternProperties":{"^a":{},"b$":{}}})", "patternProperties"},
      {R"({"type":"object","patternProperties":{"^a":{}},"properties":{"b":{}}})", "patternProperties"},
      {R"({"type":"object","patternProperties":{"^a":{}},"additionalProperties":true})", "patternProperties"},
      {R"x({"type":"object","patternProperties":{"(?=a)":{}}})x", "patternProperties"},
      {R"({"type":"object","propertyNames":{}})", "propertyNames"},
      {R"({"type":"object","propertyNames":{"format":"date"}})", "format"},
      {R"({"type":"object","propertyNames":{"pattern":"a"},"properties":{"b":{}}})", "propertyNames"},
      {R"({"type":"object","minProperties":2})", "minProperties"},
      {R"({"type":"object","minProperties":3,"maxProperties":2})", "maxProperties"},
      {R"({"type":"object","properties":{"a":{}},"minProperties":2})", "minProperties"},
      {R"({"type":"object","properties":{"a":{}},"required":["a"],"maxProperties":0})", "maxProperties"},
      {R"({"type":"object","additionalProperties":{"$ref":"#"},"minProperties":1})", "finite"},
      {R"({"type":"object","unevaluatedProperties":false})", "unevaluatedProperties"},
      {R"({"type":"string","format":"iri"})", "iri"},
      {R"({"type":"string","format":"date","minLength":3})", "format"},
      {R"({"type":"string","pattern":"a","maxLength":3})", "pattern"},
      {R"({"type":"string","pattern":"(?=a)b"})", "(?"},
      {R"({"type":"string","pattern":"(a)\\1"})", "back reference"},
      {R"({"type":"string","maxLength":-1})", "maxLength"},
      {R"({"type":"string","maxLength":100000000})", "maxLength"},
      {R"({"minLength":3})", "minLength"},
      {R"({"type":"strnig"})", "strnig"},
      {R"({"type":"boolean","properties":{}})", "properties"},
      {R"({"type":"string","enum":["a",1]})", "enum"},
      {R"({"enum":[]})", "enum"},
      {R"({"const":1,"minimum":0})", "minimum"},
      {R"({"anyOf":[{"type":"string"}],"type":"object"})", "anyOf"},
      {R"({"anyOf":[]})", "anyOf"},
      {R"({"allOf":[{"type":"string"},{"type":"integer"}]})", "allOf"},
      {R"({"allOf":[{"type":"string","pattern":"a"},{"pattern":"b"}]})", "pattern"},
      {R"({"allOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})",
       "allOf"},
      {R"({"allOf":[{"enum":[1]},{"const":2}]})", "allOf"},
      {R"({"allOf":[{"$ref":"#"},{"type":"object"}]})", "allOf"},
      {R"({"allOf":[{"type":"integer"},{"not":{}}]})", "not"},
      {R"({"oneOf":[{"type":"string"},{"type":"string","maxLength":3}]})", "oneOf"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf"},
      {R"({"$ref":"http://example.com/s.json"})", "$ref"},
      {R"({"$ref":"#/$defs/missing"})", "$ref"},
      {R"({"$ref":"#/$defs/a","type":"object","$defs":{"a":{}}})", "type"},
      {R"({"$ref":"#"})", "finite"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})", "finite"},
      {R"({"type":"object","properties":{"me":{"$ref":"#"}},"required":["me"]})", "finite"},
      {R"({"type":"object","properties":{"a":false}})", "false"},
      {R"({"type":"object","required":["b"],"properties":{"a":{}}})", "b"},
      {R"({"type":"integer","minimum":5,"maximum":2})", "range"},
      {R"({"type":"array","minItems":3,"maxItems":2})", "minItems"},
      {R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"string","nonsense":1}}}})",
       "/properties/a/items"},
      {R"({"type":"object","type":"string"})", "duplicate"},
      {R"({"type":)", ""},
      {"", "empty"},
  };
  for (const Refused& item : cases) {
    SCOPED_TRACE(item.schema);
    const auto made = setup().compiler->json_schema(item.schema, "response_format.schema");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(made.error().param, "response_format.schema");
    EXPECT_NE(made.error().message.find(item.mentions), std::string::npos) << made.error().message;
  }
}

TEST(JsonSchemaGrammar, LimitsAreKept) {
  std::string deep = "{}";
  for (int i = 0; i < 40; ++i) deep = R"({"type":"array","items":)" + deep + "}";
  EXPECT_FALSE(setup().compiler->json_schema(deep, "s").ok());
  EXPECT_FALSE(setup().compiler->json_schema("{\"title\":\"" + std::string(300'000, 'x') + "\"}", "s").ok());

  GrammarLimits few;
  few.max_rules = 5;
  auto small = GrammarCompiler::create(*setup().tokenizer, setup().n_vocab, few);
  ASSERT_TRUE(small.ok());
  const auto made = (*small)->json_schema(kAccepted[0], "s");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("rules"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace hocket
