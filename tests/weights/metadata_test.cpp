#include "weights/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hocket {
namespace {

Metadata example() {
  Metadata m;
  m.set("int", int64_t{-3});
  m.set("large", uint64_t{1} << 63);
  m.set("float", 2.5);
  m.set("nan", std::nan(""));
  m.set("bool", true);
  m.set("text", std::string("abc"));
  m.set("ints", MetadataArray{std::vector<int64_t>{4, 5, 6}});
  m.set("floats", MetadataArray{std::vector<double>{0.5, 1.5}});
  m.set("bad_floats", MetadataArray{std::vector<double>{0.5, std::numeric_limits<double>::infinity()}});
  m.set("texts", MetadataArray{std::vector<std::string>{"x", "y"}});
  m.set("bools", MetadataArray{std::vector<bool>{true, false}});
  return m;
}

template <class T>
void expect_error(const Result<T>& result, const std::string& key, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kBadModel);
  EXPECT_EQ(result.error().param, key);
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find(key), std::string::npos) << result.error().message;
}

TEST(Metadata, GivesValuesOfTheRightType) {
  const Metadata m = example();
  EXPECT_EQ(*m.integer("int"), -3);
  EXPECT_EQ(*m.number("float"), 2.5);
  EXPECT_EQ(*m.number("int"), -3.0);
  EXPECT_EQ(*m.number("large"), 9223372036854775808.0);
  EXPECT_EQ(*m.boolean("bool"), true);
  EXPECT_EQ(*m.string("text"), "abc");
  EXPECT_EQ(**m.integers("ints"), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(**m.numbers("floats"), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(**m.strings("texts"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(**m.booleans("bools"), (std::vector<bool>{true, false}));
}

TEST(Metadata, NamesMissingKeys) {
  const Metadata m = example();
  expect_error(m.integer("none"), "none", "missing");
  expect_error(m.number("none"), "none", "missing");
  expect_error(m.boolean("none"), "none", "missing");
  expect_error(m.string("none"), "none", "missing");
  expect_error(m.per_layer("none", 2, std::nullopt, 0, 9), "none", "missing");
}

TEST(Metadata, RefusesWrongTypes) {
  const Metadata m = example();
  expect_error(m.integer("float"), "float", "expected an integer, found the float 2.5");
  expect_error(m.integer("bool"), "bool", "found true");
  expect_error(m.integer("ints"), "ints", "found an array of 3 integers");
  expect_error(m.number("text"), "text", "expected a number, found a string");
  expect_error(m.number("nan"), "nan", "not finite");
  expect_error(m.boolean("int"), "int", "expected a boolean");
  expect_error(m.string("int"), "int", "expected a string, found the integer -3");
  expect_error(m.strings("ints"), "ints", "expected an array of strings");
  expect_error(m.integers("bools"), "bools", "expected an array of integers, found an array of 2 booleans");
  expect_error(m.integers("int"), "int", "found the integer -3");
  expect_error(m.numbers("ints"), "ints", "expected an array of floats");
  expect_error(m.numbers("bad_floats"), "bad_floats", "element 1");
  expect_error(m.booleans("ints"), "ints", "expected an array of booleans");
}

TEST(Metadata, ChecksRanges) {
  const Metadata m = example();
  EXPECT_TRUE(m.integer("int", -3, -3).ok());
  expect_error(m.integer("int", 0), "int", "the integer -3 is not in 0");
  expect_error(m.integer("int", -9, -4), "int", "is not in -9 … -4");
  expect_error(m.integer("large"), "large", "9223372036854775808");
  expect_error(m.integer_or("int", 7, 0, 9), "int", "is not in 0 … 9");
}

TEST(Metadata, DefaultsOnlyForMissingKeys) {
  const Metadata m = example();
  EXPECT_EQ(*m.integer_or("none", 7), 7);
  EXPECT_EQ(*m.number_or("none", 0.5), 0.5);
  EXPECT_EQ(*m.boolean_or("none", true), true);
  EXPECT_EQ(*m.string_or("none", "x"), "x");
  EXPECT_EQ(*m.integer_or("int", 7), -3);
  expect_error(m.integer_or("text", 7), "text", "expected an integer");
  expect_error(m.number_or("text", 7), "text", "expected a number");
  expect_error(m.boolean_or("text", true), "text", "expected a boolean");
  expect_error(m.string_or("bool", "x"), "bool", "expected a string");
}

TEST(Metadata, MissingArraysAreNull) {
  const Metadata m = example();
  EXPECT_EQ(*m.strings("none"), nullptr);
  EXPECT_EQ(*m.integers("none"), nullptr);
  EXPECT_EQ(*m.numbers("none"), nullptr);
  EXPECT_EQ(*m.booleans("none"), nullptr);
}

TEST(Metadata, PerLayerTakesAnArrayOrRepeatsAScalar) {
  const Metadata m = example();
  EXPECT_EQ(*m.per_layer("ints", 3, std::nullopt, 0, 9), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(*m.per_layer("int", 2, std::nullopt, -9, 9), (std::vector<int64_t>{-3, -3}));
  EXPECT_EQ(*m.per_layer("none", 2, 8, 0, 9), (std::vector<int64_t>{8, 8}));
  expect_error(m.per_layer("ints", 4, 1, 0, 9), "ints", "or 4 (one per layer), found 3");
  expect_error(m.per_layer("ints", 3, 1, 0, 5), "ints", "element 2 (6)");
  expect_error(m.per_layer("int", 3, 1, 0, 5), "int", "is not in 0 … 5");
  expect_error(m.per_layer("texts", 2, 1, 0, 5), "texts", "expected an array of integers");
}

TEST(Metadata, InsertKeepsTheFirstAndSetReplaces) {
  Metadata m;
  EXPECT_TRUE(m.insert("a", int64_t{1}));
  EXPECT_FALSE(m.insert("a", int64_t{2}));
  EXPECT_EQ(*m.integer("a"), 1);
  m.set("a", std::string("z"));
  EXPECT_EQ(*m.string("a"), "z");
  EXPECT_TRUE(m.has("a"));
  EXPECT_FALSE(m.has("b"));
  EXPECT_EQ(m.entries().size(), 1u);
}

}  // namespace
}  // namespace hocket
