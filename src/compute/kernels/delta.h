// compute/kernels/delta.h: the gated delta rule of one head over the tokens of a lane.
//
// With a state M (keys × values), decay g, keys k and queries q:
//   M ← diag(e^g) M;  δ = β (v − Mᵀ k);  M ← M + k δᵀ;  o = scale · Mᵀ q
//
// The values of a head do not meet: 16 of them, with all keys, are a block of the state that stays in the first-level
// cache while the tokens pass by, and a token costs one walk over it. For the dots the decay is drawn into the keys and
// queries, and o = scale · (Mᵀ (e^g q) + δ (k·q)) with M before the update, so that a walk updates M by one token and
// makes the dots of the next. A form by chunks of tokens has as many multiply-adds (3 S² + 4 · chunk · S a token
// instead of 4 S²) and rounds differently from chunk to chunk.
//
// All tables give the same bits, however the tokens are divided into calls.
#pragma once

#include <cstdint>

namespace hocket {

constexpr int64_t kDeltaRows = 16;   // values of a block
constexpr int64_t kDeltaTokens = 8;  // whose decays and scaled keys are made at a time

struct DeltaHead {
  int64_t head_dim, n_tokens;  // head_dim: a multiple of 16
  // Of token 0; strides in floats from token to token.
  const float *q, *k, *v, *gate, *beta;  // [head_dim] each, but gate [n_gate] and beta [1]
  int64_t q_stride, k_stride, v_stride, gate_stride, beta_stride;
  int64_t n_gate;  // 1, or head_dim: of each key
  float* out;      // [head_dim]
  int64_t out_stride;
  float scale;
  float* state;  // [head_dim keys, head_dim values], updated
  // The state s tokens before the last goes to kept + s · kept_stride, for s in [1, n_kept).
  int64_t n_kept;
  float* kept;
  int64_t kept_stride;
  float* scratch;  // delta_scratch() floats
};

constexpr int64_t delta_scratch(int64_t head_dim) {
  return 3 * kDeltaTokens * head_dim;
}

using RunDelta = void (*)(const DeltaHead& head);

}  // namespace hocket
