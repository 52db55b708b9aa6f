// tokenizer/piece_memo.h: lets a text's repeated words be encoded once.
//
// Owns     places in the output of one encode() call; pieces are views into that call's text.
// Threads  one user.
// Cost     bounded: short pieces only, and so many of them.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hocket {

class PieceMemo {
 public:
  // Appends the tokens of `piece` to `out`: those of an earlier call, or what `encode()` appends. `out` only grows
  // between calls.
  template <class Encode>
  void append(std::string_view piece, std::vector<TokenId>& out, Encode&& encode) {
    if (piece.size() > kMaxBytes) return encode();
    const auto known = places_.find(piece);
    const std::size_t first = out.size();
    if (known == places_.end()) {
      encode();
      if (places_.size() < kMaxPieces) places_.emplace(piece, std::pair(first, out.size() - first));
      return;
    }
    const auto [at, n] = known->second;
    for (std::size_t i = 0; i < n; ++i) out.push_back(out[at + i]);
  }

 private:
  static constexpr std::size_t kMaxBytes = 64;
  static constexpr std::size_t kMaxPieces = 1u << 16;

  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> places_;  // piece → where its tokens are
};

}  // namespace hocket
