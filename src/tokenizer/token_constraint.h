// tokenizer/token_constraint.h: which tokens may come next.
//
// The sampler asks allowed() before each draw and tells accept() what was drawn. One object follows one sequence.
//
// Threads  one user at a time.
// Errors   accept(): kInternal when a token outside the mask is given; the sequence must then end with that error.
// Cost     allowed(): microseconds for masks that were seen before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Fills `mask` (bit t % 32 of word t / 32 is 1 when token t may come next; mask.size() ≥ ⌈n_vocab / 32⌉).
  // Returns false, with the mask untouched, when every token is allowed.
  virtual Result<bool> allowed(std::span<uint32_t> mask) = 0;
  // Advances by one token (end-of-generation tokens included).
  virtual Result<void> accept(TokenId id) = 0;
  // True once nothing but an end-of-generation token can follow.
  virtual bool complete() const = 0;
  // An independent copy at the present state (n > 1, drafts).
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

}  // namespace hocket
