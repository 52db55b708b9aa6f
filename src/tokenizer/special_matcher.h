// tokenizer/special_matcher.h: cuts the texts of special tokens out of a text.
//
// Longer tokens win over shorter ones wherever they stand; of one length, the lower id; then the leftmost place. That
// is what scanning the text once per token in this order gives, at the cost of one walk over a trie.
//
// Owns     a trie of the token texts.
// Threads  const.
// Cost     O(bytes × longest match); for ordinary text one table look-up a byte.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hocket {

struct SpecialText {
  TokenId id = kNoToken;
  std::string text;          // not empty
  bool strip_left = false;   // white space before it is dropped
  bool strip_right = false;  // white space after it is dropped
};

// A special token, or with id kNoToken the bytes [begin, end) between two of them. Fragments are in order and not
// empty; dropped white space belongs to none.
struct Fragment {
  TokenId id = kNoToken;
  std::size_t begin = 0;
  std::size_t end = 0;
};

class SpecialMatcher {
 public:
  explicit SpecialMatcher(std::vector<SpecialText> tokens);

  std::vector<Fragment> partition(std::string_view text) const;

 private:
  struct Node {
    int32_t token = -1;  // index into tokens_
    std::vector<std::pair<uint8_t, int32_t>> children;
  };
  struct Match {
    int32_t token = -1;
    std::size_t n_bytes = 0;
  };

  int32_t child(int32_t node, uint8_t byte) const;
  // The longest token at the start of text that has at most max_bytes.
  Match longest(std::string_view text, std::size_t max_bytes) const;

  std::vector<SpecialText> tokens_;  // ascending ids
  std::vector<Node> nodes_;
  std::array<int32_t, 256> first_{};  // node of a first byte, -1 when no token begins with it
};

}  // namespace hocket
