// compute/kernels/delta_impl.h: delta.h over a type V of 16 floats (attention_impl.h says what it has).
#pragma once

#include <cstdint>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/delta.h"

namespace hocket {
namespace {

// What a token brings, for all blocks of a head.
struct DeltaToken {
  const float* k;
  const float* decay;  // e^g
  const float* key;    // e^g k
  const float* query;  // e^g q
};

// Walks over the rows of a block: with `update`, M ← decay ⊙ M + k δᵀ; with `dots`, reads[row] and looks[row] are what
// sums up to M·key and M·query. One of the two may be absent.
template <typename V, bool kUpdate, bool kDots>
void walk(float* m, int64_t dim, const DeltaToken& update, const float* delta, const DeltaToken& dots, V* reads,
          V* looks) {
  constexpr int kRows = V::kWide ? 4 : 1;
  for (int64_t row = 0; row < kDeltaRows; row += kRows) {
    V read[kRows], look[kRows], change[kRows];
    for (int i = 0; i < kRows; ++i) {
      read[i] = look[i] = V::splat(0.0f);
      if constexpr (kUpdate) change[i] = V::splat(delta[row + i]);
    }
    float* rows = m + row * dim;
    for (int64_t c = 0; c < dim; c += 16)
      for (int i = 0; i < kRows; ++i) {
        V x = V::load(rows + i * dim + c);
        if constexpr (kUpdate) {
          x = V::fma(V::load(update.k + c), change[i], V::mul(V::load(update.decay + c), x));
          V::store(rows + i * dim + c, x);
        }
        if constexpr (kDots) {
          read[i] = V::fma(x, V::load(dots.key + c), read[i]);
          look[i] = V::fma(x, V::load(dots.query + c), look[i]);
        }
      }
    if constexpr (kDots)
      for (int i = 0; i < kRows; ++i) {
        reads[row + i] = read[i];
        looks[row + i] = look[i];
      }
  }
}

// Fills the scratch with what tokens [first, first + n) bring, and products[i] with k·q of each.
template <typename V>
void prepare_tokens(const DeltaHead& h, int64_t first, int64_t n, DeltaToken* tokens, float* products) {
  V sums[16];
  for (V& sum : sums) sum = V::splat(0.0f);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + i;
    const float *q = h.q + t * h.q_stride, *k = h.k + t * h.k_stride, *gate = h.gate + t * h.gate_stride;
    float* decay = h.scratch + 3 * i * h.head_dim;
    float *key = decay + h.head_dim, *query = key + h.head_dim;
    // Neither sign of a log decay may leave the range of the exponential's steps.
    const auto decay_at = [&](int64_t c) {
      const V g = h.n_gate == 1 ? V::splat(gate[0]) : V::load(gate + c);
      const V least = V::max(V::splat(-87.0f), V::mul(g, V::splat(-1.0f)));
      return exp_of<V>(V::mul(least, V::splat(-1.0f)));
    };
    const V one = h.n_gate == 1 ? decay_at(0) : V::splat(0.0f);
    for (int64_t c = 0; c < h.head_dim; c += 16) {
      const V d = h.n_gate == 1 ? one : decay_at(c), kc = V::load(k + c), qc = V::load(q + c);
      V::store(decay + c, d);
      V::store(key + c, V::mul(d, kc));
      V::store(query + c, V::mul(d, qc));
      sums[i] = V::fma(kc, qc, sums[i]);
    }
    tokens[i] = {k, decay, key, query};
  }
  V::store(products, V::sums(sums));
}

template <typename V>
void delta(const DeltaHead& h) {
  for (int64_t first = 0; first < h.n_tokens; first += kDeltaTokens) {
    const int64_t n = h.n_tokens - first < kDeltaTokens ? h.n_tokens - first : kDeltaTokens;
    DeltaToken tokens[kDeltaTokens];
    float products[16];
    prepare_tokens<V>(h, first, n, tokens, products);
    for (int64_t row = 0; row < h.head_dim; row += kDeltaRows) {
      float* m = h.state + row * h.head_dim;
      V reads[kDeltaRows], looks[kDeltaRows];
      walk<V, false, true>(m, h.head_dim, tokens[0], nullptr, tokens[0], reads, looks);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t t = first + i;
        const V read = V::mul(V::sums(reads), V::splat(-1.0f)), look = V::sums(looks);
        const V change = V::mul(V::splat(h.beta[t * h.beta_stride]), V::add(V::load(h.v + t * h.v_stride + row), read));
        V::store(h.out + t * h.out_stride + row,
                 V::mul(V::fma(change, V::splat(products[i]), look), V::splat(h.scale)));
        float changes[kDeltaRows];
        V::store(changes, change);
        if (i + 1 < n)
          walk<V, true, true>(m, h.head_dim, tokens[i], changes, tokens[i + 1], reads, looks);
        else
          walk<V, true, false>(m, h.head_dim, tokens[i], changes, tokens[i], reads, looks);
        if (const int64_t back = h.n_tokens - 1 - t; back >= 1 && back < h.n_kept)
          __builtin_memcpy(h.kept + back * h.kept_stride + row * h.head_dim, m,
                           static_cast<std::size_t>(kDeltaRows * h.head_dim) * sizeof(float));
      }
    }
  }
}

}  // namespace
}  // namespace hocket
