// music/planner/token_draw.h: draws token ids exactly as other programs of this model family do.
//
// Owns     the random generator of one sequence.
// Threads  one user at a time.
// Cost     one pass over the row; a sort of the likely entries with top-p.
// Source   ace-step.md §6.6. The standard library's uniform distribution is not used: libraries differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace hocket {

struct DrawOptions {
  float temperature = 0.85f;  // ≤ 0: the first of the largest
  float top_p = 0.9f;         // ≤ 0 or ≥ 1: off
  int top_k = 0;              // 0: off
};

class TokenDraw {
 public:
  explicit TokenDraw(uint32_t seed) : random_(seed) {}
  // The position of the drawn entry. Changes the row.
  std::size_t draw(std::span<float> logits, const DrawOptions& options);

 private:
  float fraction();  // in [0, 1)

  std::mt19937 random_;
};

}  // namespace hocket
