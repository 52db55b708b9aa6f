// runtime/text_automaton.h: looks for several strings at once in text that arrives byte by byte (Aho–Corasick).
//
// Owns     the trie. Empty patterns match nowhere; equal patterns are one.
// Threads  const after construction; the state belongs to the caller.
// Cost     memory linear in the patterns; amortised constant time a byte, times the branching of the trie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hocket {

class TextAutomaton {
 public:
  using State = uint32_t;
  static constexpr State kStart = 0;
  static constexpr std::size_t kNoPattern = static_cast<std::size_t>(-1);

  explicit TextAutomaton(std::span<const std::string> patterns);

  State next(State state, char byte) const;
  // Bytes at the end of the text that could be the beginning of a pattern.
  std::size_t depth(State state) const { return nodes_[state].depth; }
  // The longest pattern that ends here, as its index; kNoPattern when none does.
  std::size_t match(State state) const { return nodes_[state].match; }

 private:
  struct Node {
    State first_child = kStart, next_sibling = kStart;  // kStart: none
    State fail = kStart;                                // state of the longest proper suffix that is in the trie
    uint32_t depth = 0;
    std::size_t match = kNoPattern;
    char byte = 0;
  };
  State child(State state, char byte) const;

  std::vector<Node> nodes_{Node{}};
};

}  // namespace hocket
