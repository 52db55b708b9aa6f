// tokenizer/pretokenizer.h: the table of pre-tokenizers, by the name that model files carry in tokenizer.ggml.pre.
//
// A pre-tokenizer is a list of rules. Each rule cuts every piece that the rules before it left: a regular expression
// makes a piece of each match and of each gap between matches. splitter.h carries the rules out.
//
// Threads  pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hocket {

struct SplitRule {
  enum class Kind {
    kRegex,
    kDigitGroups,  // cuts runs of 0-9 into groups of three, counted from the right
  };
  Kind kind = Kind::kRegex;
  // PCRE2 syntax over Unicode text. \s is White_Space; \p{…} are general categories.
  std::string pattern;
};

struct Pretokenizer {
  std::vector<SplitRule> rules;
  bool ignore_merges = false;  // a piece that is a token is taken as it is
  bool add_bos = false;        // unless the file says otherwise
  bool default_bos = true;     // whether the kind's default BOS id applies
  bool raw_text = false;       // no byte alphabet: merges work on characters, spaces are written as U+2581
};

std::optional<Pretokenizer> find_pretokenizer(std::string_view name);

// Ascending; for messages and tests.
std::vector<std::string_view> pretokenizer_names();

}  // namespace hocket
