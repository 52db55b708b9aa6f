#include "runtime/text_automaton.h"

namespace hocket {

TextAutomaton::TextAutomaton(std::span<const std::string> patterns) {
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    State at = kStart;
    for (const char byte : patterns[i]) {
      State to = child(at, byte);
      if (to == kStart) {
        to = static_cast<State>(nodes_.size());
        Node node;
        node.byte = byte;
        node.depth = nodes_[at].depth + 1;
        node.next_sibling = nodes_[at].first_child;
        nodes_.push_back(node);
        nodes_[at].first_child = to;
      }
      at = to;
    }
    if (at != kStart && nodes_[at].match == kNoPattern) nodes_[at].match = i;
  }

  // Breadth first, so that the link of a shorter text is known before a longer one needs it.
  std::vector<State> order{kStart};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const State parent = order[i];
    for (State at = nodes_[parent].first_child; at != kStart; at = nodes_[at].next_sibling) {
      order.push_back(at);
      if (parent == kStart) continue;
      nodes_[at].fail = next(nodes_[parent].fail, nodes_[at].byte);
      if (nodes_[at].match == kNoPattern) nodes_[at].match = nodes_[nodes_[at].fail].match;
    }
  }
}

TextAutomaton::State TextAutomaton::child(State state, char byte) const {
  State at = nodes_[state].first_child;
  while (at != kStart && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
  return at;
}

TextAutomaton::State TextAutomaton::next(State state, char byte) const {
  while (true) {
    if (const State to = child(state, byte); to != kStart) return to;
    if (state == kStart) return kStart;
    state = nodes_[state].fail;
  }
}

}  // namespace hocket
