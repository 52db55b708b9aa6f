// compute/kernels/attention_impl.h: attention.h over a type V of 16 floats, which each instruction set brings:
//
//   load, store, splat, load_half, load_bf16, fma, add, mul, max, round
//   most(v)               the largest lane
//   sums(v[16])           lane i: the sum of the lanes of v[i], added as ((x0 + x2) + (x1 + x3)) within each four
//   lanes, then
//                         ((fours 0 and 2) + (fours 1 and 3))
//   zero_where_below, minus_infinity_where, times_power_of_two
//   kWide                 a vector is one register, of which there are 32
//
// All is of internal linkage: the including files are compiled for instructions that not every CPU has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/kernels/attention.h"

namespace hocket {
namespace {

// e^x for x ≤ 0; what is below e^-87 becomes 0.
template <typename V>
inline __attribute__((always_inline)) V exp_of(V x) {
  const V low = V::splat(-87.0f);
  const V in = V::max(low, x);
  const V n = V::round(V::mul(in, V::splat(1.44269504088896341f)));
  V r = V::fma(n, V::splat(-0.693359375f), in);
  r = V::fma(n, V::splat(2.12194440e-4f), r);
  V p = V::splat(1.9875691500e-4f);
  p = V::fma(p, r, V::splat(1.3981999507e-3f));
  p = V::fma(p, r, V::splat(8.3334519073e-3f));
  p = V::fma(p, r, V::splat(4.1665795894e-2f));
  p = V::fma(p, r, V::splat(1.6666665459e-1f));
  p = V::fma(p, r, V::splat(5.0000001201e-1f));
  const V y = V::add(V::fma(p, V::mul(r, r), r), V::splat(1.0f));
  return V::zero_where_below(x, low, V::times_power_of_two(y, n));
}

// Cells [first, first + n) of the list as floats, dimensions padded with zeros. Whether all are finite.
template <typename V>
bool convert_cells(const CellHead& head, const int32_t* cells, int64_t first, int64_t n, float* out) {
  const int64_t padded = padded_dim(head.dim), whole = head.dim / 16 * 16;
  V zeros = V::splat(0.0f);  // 0 · v, which is a NaN for what is not finite
  for (int64_t c = 0; c < n; ++c, out += padded) {
    const std::byte* cell = head.data + (cells ? cells[first + c] : first + c) * head.stride;
    const auto read = [&](const std::byte* at) {
      if (head.type == CellType::kF16) return V::load_half(reinterpret_cast<const uint16_t*>(at));
      if (head.type == CellType::kBF16) return V::load_bf16(reinterpret_cast<const uint16_t*>(at));
      return V::load(reinterpret_cast<const float*>(at));
    };
    const int64_t size = head.type == CellType::kF32 ? 4 : 2;
    for (int64_t d = 0; d < whole; d += 16) {
      const V values = read(cell + size * d);
      zeros = V::fma(values, V::splat(0.0f), zeros);
      V::store(out + d, values);
    }
    if (whole < head.dim) {
      std::byte rest[64] = {};
      __builtin_memcpy(rest, cell + size * whole, static_cast<std::size_t>(size * (head.dim - whole)));
      const V values = read(rest);
      zeros = V::fma(values, V::splat(0.0f), zeros);
      V::store(out + whole, values);
    }
  }
  float lanes[16];
  V::store(lanes, zeros);
  bool finite = true;
  for (const float lane : lanes) finite = finite && lane == 0.0f;
  return finite;
}

// The products of kRows rows of q with kCells cells, before their lanes are added up.
template <typename V, int kRows, int kCells>
inline __attribute__((always_inline)) void dots(const float* q, const float* k, int64_t padded, V* sums) {
  V acc[kRows * kCells];
  for (auto& a : acc) a = V::splat(0.0f);
  for (int64_t d = 0; d < padded; d += 16) {
    V cells[kCells];
    for (int c = 0; c < kCells; ++c) cells[c] = V::load(k + c * padded + d);
    for (int r = 0; r < kRows; ++r) {
      const V row = V::load(q + r * padded + d);
      for (int c = 0; c < kCells; ++c) acc[r * kCells + c] = V::fma(row, cells[c], acc[r * kCells + c]);
    }
  }
  for (int i = 0; i < kRows * kCells; ++i) sums[i] = acc[i];
}

// Scores of kRows rows and 16 / kRows cells.
template <typename V, int kRows>
inline __attribute__((always_inline)) void score_block(const float* q, const float* k, int64_t padded, float* scores,
                                                       int64_t stride) {
  constexpr int kCells = 16 / kRows;
  V sums[16];
  if constexpr (V::kWide && kRows == 4) {
    dots<V, 4, 4>(q, k, padded, sums);
  } else {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCells; c += 4) dots<V, 1, 4>(q + r * padded, k + c * padded, padded, sums + r * kCells + c);
  }
  float out[16];
  V::store(out, V::sums(sums));
  for (int r = 0; r < kRows; ++r)
    __builtin_memcpy(scores + r * stride, out + r * kCells, static_cast<std::size_t>(kCells) * sizeof(float));
}

template <typename V, int kRows>
void score_rows(const float* q, const float* k, int64_t padded, float* scores, int64_t stride) {
  for (int64_t c = 0; c < kAttentionCells; c += 16 / kRows)
    score_block<V, kRows>(q, k + c * padded, padded, scores + c, stride);
}

// acc[row] += Σ p[row][cell] · v[cell], and the sums of p, for kRows rows.
template <typename V, int kRows>
void add_values(const float* p, int64_t stride, const float* v, int64_t padded, int64_t n_cells, float* acc,
                float* total) {
  constexpr int kDims = V::kWide ? 4 : 1;
  for (int r = 0; r < kRows; ++r) {
    float sum = total[r];
    for (int64_t c = 0; c < n_cells; ++c) sum += p[r * stride + c];
    total[r] = sum;
  }
  int64_t d = 0;
  for (; d + 16 * kDims <= padded; d += 16 * kDims) {
    V sums[kRows * kDims];
    for (int r = 0; r < kRows; ++r)
      for (int i = 0; i < kDims; ++i) sums[r * kDims + i] = V::load(acc + r * padded + d + 16 * i);
    for (int64_t c = 0; c < n_cells; ++c) {
      V values[kDims];
      for (int i = 0; i < kDims; ++i) values[i] = V::load(v + c * padded + d + 16 * i);
      for (int r = 0; r < kRows; ++r) {
        const V weight = V::splat(p[r * stride + c]);
        for (int i = 0; i < kDims; ++i) sums[r * kDims + i] = V::fma(weight, values[i], sums[r * kDims + i]);
      }
    }
    for (int r = 0; r < kRows; ++r)
      for (int i = 0; i < kDims; ++i) V::store(acc + r * padded + d + 16 * i, sums[r * kDims + i]);
  }
  for (; d < padded; d += 16)
    for (int r = 0; r < kRows; ++r) {
      V sum = V::load(acc + r * padded + d);
      for (int64_t c = 0; c < n_cells; ++c) sum = V::fma(V::splat(p[r * stride + c]), V::load(v + c * padded + d), sum);
      V::store(acc + r * padded + d, sum);
    }
}

// The same where a value is not finite: cells that a row does not see must not touch it.
template <typename V>
void add_values_seen(const float* p, const float* v, int64_t padded, int64_t n_cells, float* acc, float* total) {
  for (int64_t c = 0; c < n_cells; ++c) {
    if (p[c] == 0.0f) continue;
    *total += p[c];
    for (int64_t d = 0; d < padded; d += 16)
      V::store(acc + d, V::fma(V::splat(p[c]), V::load(v + c * padded + d), V::load(acc + d)));
  }
}

// Products into softcap · tanh(scale · product / softcap).
template <typename V>
void cap(const AttentionRows& t, int64_t n, float* scores) {
  const V factor = V::splat(t.scale / t.softcap);
  for (int64_t c = 0; c < n; c += 16) {
    const V x = V::mul(V::load(scores + c), factor);
    float in[16], e[16];  // e^(−2|x|)
    V::store(in, x);
    V::store(e, exp_of<V>(V::mul(V::max(x, V::mul(x, V::splat(-1.0f))), V::splat(-2.0f))));
    for (int i = 0; i < 16; ++i) {
      const float capped = t.softcap * ((1.0f - e[i]) / (1.0f + e[i]));
      scores[c + i] = in[i] < 0 ? -capped : in[i] >= 0 ? capped : in[i];
    }
  }
}

// Scores of a row into their exponentials; returns the largest score.
template <typename V>
float soften(const AttentionRows& t, int64_t row, int64_t n, float* scores) {
  if (t.softcap != 0.0f) cap<V>(t, n, scores);
  const V scale = V::splat(t.softcap != 0.0f ? 1.0f : t.scale);
  V most = V::splat(-__builtin_inff());
  for (int64_t c = 0; c < n; c += 16) {
    const V added = V::load_half(t.mask[row] + c);
    const V score = V::minus_infinity_where(added, V::fma(V::load(scores + c), scale, added));
    V::store(scores + c, score);
    most = V::max(most, score);
  }
  float largest = V::most(most);
  if (t.sink[row] && *t.sink[row] > largest) largest = *t.sink[row];
  if (largest == -__builtin_inff()) {
    for (int64_t c = 0; c < n; ++c) scores[c] = 0;
    return largest;
  }
  for (int64_t c = 0; c < n; c += 16) V::store(scores + c, exp_of<V>(V::add(V::load(scores + c), V::splat(-largest))));
  return largest;
}

template <typename V>
void attention(const AttentionRows& t) {
  const int64_t padded_k = padded_dim(t.k.dim), padded_v = padded_dim(t.v.dim);
  const int64_t n = padded_cells(t.n_cells);
  float* cells = t.scratch;
  float* q = cells + kAttentionCells * (padded_k > padded_v ? padded_k : padded_v);
  float* acc = q + kAttentionRows * padded_k;
  float* scores = acc + kAttentionRows * padded_v;

  for (int64_t r = 0; r < t.n_rows; ++r) {
    for (int64_t d = 0; d < padded_k; ++d) q[r * padded_k + d] = d < t.k.dim ? t.q[r][d] : 0.0f;
    for (int64_t d = 0; d < padded_v; ++d) acc[r * padded_v + d] = 0;
  }
  for (int64_t c = 0; c < n; c += kAttentionCells) {
    const int64_t left = t.n_cells - c, n_here = left < kAttentionCells ? left : kAttentionCells;
    convert_cells<V>(t.k, t.cells, c, n_here, cells);
    for (int64_t i = n_here * padded_k; i < kAttentionCells * padded_k; ++i) cells[i] = 0;
    int64_t r = 0;
    for (; r + 4 <= t.n_rows; r += 4) score_rows<V, 4>(q + r * padded_k, cells, padded_k, scores + r * n + c, n);
    for (; r < t.n_rows; ++r) score_rows<V, 1>(q + r * padded_k, cells, padded_k, scores + r * n + c, n);
  }
  float total[kAttentionRows];
  for (int64_t r = 0; r < t.n_rows; ++r) {
    const float largest = soften<V>(t, r, n, scores + r * n);
    total[r] = 0;
    if (t.sink[r]) {
      float one[16];
      V::store(one, exp_of<V>(V::splat(*t.sink[r] - largest)));
      total[r] = one[0];
    }
  }
  for (int64_t c = 0; c < n; c += kAttentionCells) {
    const int64_t left = t.n_cells - c, n_here = left < kAttentionCells ? left : kAttentionCells;
    const bool finite = convert_cells<V>(t.v, t.cells, c, n_here, cells);
    int64_t r = 0;
    for (; !finite && r < t.n_rows; ++r)
      add_values_seen<V>(scores + r * n + c, cells, padded_v, n_here, acc + r * padded_v, total + r);
    for (; r + 4 <= t.n_rows; r += 4)
      add_values<V, 4>(scores + r * n + c, n, cells, padded_v, n_here, acc + r * padded_v, total + r);
    for (; r < t.n_rows; ++r)
      add_values<V, 1>(scores + r * n + c, n, cells, padded_v, n_here, acc + r * padded_v, total + r);
  }
  for (int64_t r = 0; r < t.n_rows; ++r) {
    const float inverse = total[r] > 0 || total[r] != total[r] ? 1.0f / total[r] : 0.0f;
    for (int64_t d = 0; d < t.v.dim; ++d) t.out[r][d] = acc[r * padded_v + d] * inverse;
  }
}

}  // namespace
}  // namespace hocket
