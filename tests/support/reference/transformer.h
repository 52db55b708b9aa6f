// tests/support/reference/transformer.h: naive double-precision twins of the language-model blocks. Written for
// reading: plain loops over rows, no cache, no batching.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hocket::test::reference {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one a token

// weight [n_in, n_out] in ggml order: n_in contiguous.
inline Row product(const Row& weight, const Row& x) {
  Row y(weight.size() / x.size(), 0.0);
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
  return y;
}

inline Row rms_norm(const Row& x, const Row& weight, double eps) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] / std::sqrt(sum / static_cast<double>(x.size()) + eps) * weight[i];
  return y;
}

struct Rope {
  bool half_split = false;  // (j, j + n/2) instead of (2j, 2j + 1)
  std::size_t n_rot = 0;
  double base = 10000, scale = 1;
  Row factors;  // divisors of θ, empty = 1
  bool yarn = false;
  double yarn_factor = 1, n_ctx_orig = 0, beta_fast = 32, beta_slow = 1;
};

// Rotates the first n_rot values of one head in place.
inline void rotate(double* head, double position, const Rope& rope) {
  const auto n = static_cast<double>(rope.n_rot);
  const auto corr = [&](double beta) {
    return n * std::log(rope.n_ctx_orig / (2 * M_PI * beta)) / (2 * std::log(rope.base));
  };
  for (std::size_t j = 0; j < rope.n_rot / 2; ++j) {
    const double f =
        std::pow(rope.base, -2.0 * static_cast<double>(j) / n) / (rope.factors.empty() ? 1 : rope.factors[j]);
    double theta = position * f * rope.scale, amplitude = 1;
    if (rope.yarn) {
      const double lo = std::max(0.0, std::floor(corr(rope.beta_fast)));
      const double hi = std::min(n - 1, std::ceil(corr(rope.beta_slow)));
      const double y = std::clamp((static_cast<double>(j) - lo) / std::max(0.001, hi - lo), 0.0, 1.0);
      theta = position * f / rope.yarn_factor * y + position * f * (1 - y);
      amplitude = 1 + 0.1 * std::log(rope.yarn_factor);
    }
    double& a = head[rope.half_split ? j : 2 * j];
    double& b = head[rope.half_split ? j + rope.n_rot / 2 : 2 * j + 1];
    const double c = std::cos(theta) * amplitude, s = std::sin(theta) * amplitude;
    const double a2 = a * c - b * s, b2 = a * s + b * c;
    a = a2;
    b = b2;
  }
}

struct AttentionWeights {
  std::size_t n_head = 0, n_kv_head = 0, head_dim = 0;
  Row q, k, v, output;
  Row q_bias, k_bias, v_bias, output_bias;  // empty = none
  Row q_norm, k_norm;                       // empty = none
  Row sinks;                                // of each head; empty = none
  double eps = 1e-5, scale = 1, softcap = 0;
  std::size_t window = 0;
  Rope rope;  // n_rot 0 = none
};

// Causal self-attention of tokens at positions 0, 1, ….
inline Rows attention(const AttentionWeights& w, const Rows& h) {
  const auto project = [&](const Row& weight, const Row& bias, const Row& norm, const Row& x, bool rotated,
                           double pos) {
    Row y = product(weight, x);
    for (std::size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
    for (std::size_t at = 0; at < y.size(); at += w.head_dim) {
      if (!norm.empty()) {
        const Row head = rms_norm(
            Row(y.begin() + static_cast<std::ptrdiff_t>(at), y.begin() + static_cast<std::ptrdiff_t>(at + w.head_dim)),
            norm, w.eps);
        std::copy(head.begin(), head.end(), y.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (rotated && w.rope.n_rot > 0) rotate(y.data() + at, pos, w.rope);
    }
    return y;
  };
  Rows out, keys, values;
  for (std::size_t t = 0; t < h.size(); ++t) {
    const auto pos = static_cast<double>(t);
    keys.push_back(project(w.k, w.k_bias, w.k_norm, h[t], true, pos));
    values.push_back(project(w.v, w.v_bias, {}, h[t], false, pos));
    const Row q = project(w.q, w.q_bias, w.q_norm, h[t], true, pos);
    Row mixed(w.n_head * w.head_dim, 0.0);
    for (std::size_t head = 0; head < w.n_head; ++head) {
      const std::size_t kv = head / (w.n_head / w.n_kv_head);
      const std::size_t first = w.window > 0 && t + 1 > w.window ? t + 1 - w.window : 0;
      Row scores;
      for (std::size_t s = first; s <= t; ++s) {
        double score = 0;
        for (std::size_t i = 0; i < w.head_dim; ++i) score += q[head * w.head_dim + i] * keys[s][kv * w.head_dim + i];
        score *= w.scale;
        scores.push_back(w.softcap > 0 ? w.softcap * std::tanh(score / w.softcap) : score);
      }
      double most = *std::max_element(scores.begin(), scores.end());
      if (!w.sinks.empty()) most = std::max(most, w.sinks[head]);
      double sum = w.sinks.empty() ? 0 : std::exp(w.sinks[head] - most);
      for (double& s : scores) sum += s = std::exp(s - most);
      for (std::size_t s = first; s <= t; ++s)
        for (std::size_t i = 0; i < w.head_dim; ++i)
          mixed[head * w.head_dim + i] += scores[s - first] / sum * values[s][kv * w.head_dim + i];
    }
    Row y = product(w.output, mixed);
    for (std::size_t i = 0; i < w.output_bias.size(); ++i) y[i] += w.output_bias[i];
    out.push_back(std::move(y));
  }
  return out;
}

inline double silu(double x) {
  return x / (1 + std::exp(-x));
}
inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

inline Row gated_mlp(const Row& gate, const Row& up, const Row& down, const Row& h, bool use_gelu) {
  Row g = product(gate, h);
  const Row u = product(up, h);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = (use_gelu ? gelu(g[i]) : silu(g[i])) * u[i];
  return product(down, g);
}

}  // namespace hocket::test::reference
