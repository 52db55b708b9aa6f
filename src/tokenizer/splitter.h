// tokenizer/splitter.h: carries out the rules of a pre-tokenizer, with PCRE2.
//
// Owns     the compiled rules.
// Threads  split() from any thread; each thread keeps its own match state.
// Errors   create(): kInternal when a rule does not compile. split(): kInvalid when a rule passes PCRE2's limits.
// Cost     linear in the text for every rule of the table, in constant stack.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/pretokenizer.h"

namespace hocket {

class Splitter {
 public:
  static Result<std::unique_ptr<Splitter>> create(const std::vector<SplitRule>& rules);
  virtual ~Splitter() = default;

  // Replaces `ends` by the ascending ends of the pieces (the last is text.size(); none for an empty text). Every byte
  // that is not part of a valid character counts as one U+FFFD and may be the end of a piece.
  virtual Result<void> split(std::string_view text, std::vector<std::size_t>& ends) const = 0;
};

}  // namespace hocket
