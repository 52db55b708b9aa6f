#include "tokenizer/special_matcher.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hocket {
namespace {

bool is_space_byte(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

SpecialMatcher::SpecialMatcher(std::vector<SpecialText> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const SpecialText& a, const SpecialText& b) { return a.id < b.id; });
  first_.fill(-1);
  for (std::size_t index = 0; index < tokens_.size(); ++index) {
    int32_t node = -1;
    for (const char c : tokens_[index].text) {
      const auto byte = static_cast<uint8_t>(c);
      int32_t next = node < 0 ? first_[byte] : child(node, byte);
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_.emplace_back();
        if (node < 0)
          first_[byte] = next;
        else
          nodes_[static_cast<std::size_t>(node)].children.emplace_back(byte, next);
      }
      node = next;
    }
    if (node >= 0) nodes_[static_cast<std::size_t>(node)].token = static_cast<int32_t>(index);
  }
}

int32_t SpecialMatcher::child(int32_t node, uint8_t byte) const {
  for (const auto& [key, next] : nodes_[static_cast<std::size_t>(node)].children)
    if (key == byte) return next;
  return -1;
}

SpecialMatcher::Match SpecialMatcher::longest(std::string_view text, std::size_t max_bytes) const {
  Match best;
  int32_t node = first_[static_cast<uint8_t>(text[0])];
  for (std::size_t n = 1; node >= 0 && n <= max_bytes; ++n) {
    const int32_t token = nodes_[static_cast<std::size_t>(node)].token;
    if (token >= 0) best = {token, n};
    if (n == text.size()) break;
    node = child(node, static_cast<uint8_t>(text[n]));
  }
  return best;
}

std::vector<Fragment> SpecialMatcher::partition(std::string_view text) const {
  if (text.empty()) return {};
  struct Candidate {
    int32_t token;
    std::size_t begin;
    bool operator<(const Candidate& other) const { return std::tie(token, begin) < std::tie(other.token, other.begin); }
  };
  // Every place stands in the bucket of the longest token that may still begin there.
  std::map<std::size_t, std::vector<Candidate>> by_length;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (first_[static_cast<uint8_t>(text[at])] < 0) continue;
    const Match match = longest(text.substr(at), text.size());
    if (match.token >= 0) by_length[match.n_bytes].push_back({match.token, at});
  }
  if (by_length.empty()) return {Fragment{kNoToken, 0, text.size()}};

  struct Taken {
    Fragment token;
    std::size_t from, to;  // with the white space that it drops
  };
  std::vector<Taken> taken;
  std::vector<bool> covered(text.size(), false);
  while (!by_length.empty()) {
    auto bucket = by_length.extract(std::prev(by_length.end()));
    const std::size_t n_bytes = bucket.key();
    std::sort(bucket.mapped().begin(), bucket.mapped().end());
    for (const Candidate& candidate : bucket.mapped()) {
      const std::size_t begin = candidate.begin, end = begin + n_bytes;
      if (covered[begin]) continue;
      // What is covered so far is at least n_bytes long, so an overlap would reach one of the two ends.
      if (covered[end - 1]) {
        const Match shorter = longest(text.substr(begin), n_bytes - 1);
        if (shorter.token >= 0) by_length[shorter.n_bytes].push_back({shorter.token, begin});
        continue;
      }
      const SpecialText& token = tokens_[static_cast<std::size_t>(candidate.token)];
      std::size_t from = begin, to = end;
      while (token.strip_left && from > 0 && !covered[from - 1] && is_space_byte(text[from - 1])) --from;
      while (token.strip_right && to < text.size() && !covered[to] && is_space_byte(text[to])) ++to;
      std::fill(covered.begin() + static_cast<std::ptrdiff_t>(from), covered.begin() + static_cast<std::ptrdiff_t>(to),
                true);
      taken.push_back({{token.id, begin, end}, from, to});
    }
  }

  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.from < b.from; });
  std::vector<Fragment> fragments;
  std::size_t at = 0;
  for (const Taken& special : taken) {
    if (special.from > at) fragments.push_back({kNoToken, at, special.from});
    fragments.push_back(special.token);
    at = special.to;
  }
  if (at < text.size()) fragments.push_back({kNoToken, at, text.size()});
  return fragments;
}

}  // namespace hocket
