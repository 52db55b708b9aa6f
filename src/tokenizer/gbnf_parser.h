// tokenizer/gbnf_parser.h: the syntax tree of a GBNF grammar.
//
// Threads  values.
// Errors   parse_gbnf(): kInvalid with line and column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

struct GbnfPlace {
  int line = 1, column = 1;
};

struct GbnfElement;
using GbnfSequence = std::vector<GbnfElement>;

struct GbnfRange {
  char32_t first, last;
};

struct GbnfElement {
  enum class Kind { kLiteral, kClass, kReference, kGroup } kind = Kind::kLiteral;
  std::u32string literal;
  std::vector<GbnfRange> ranges;  // kClass
  bool negated = false;
  std::string name;                        // kReference
  std::vector<GbnfSequence> alternatives;  // kGroup
  int min = 1, max = 1;                    // repetition; max −1: unbounded
  GbnfPlace place;
};

struct GbnfRule {
  std::string name;
  GbnfPlace place;
  std::vector<GbnfSequence> alternatives;
};

Result<std::vector<GbnfRule>> parse_gbnf(std::string_view source, std::size_t max_rules);

// "line 3, column 7: what"
Error gbnf_error(GbnfPlace place, std::string_view what);

}  // namespace hocket
