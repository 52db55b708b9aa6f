// Attention without a cache: against double precision, for every kind of sight.
#include "compute/dense_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compute/kernels/kernel_table.h"
#include "support/graph_run.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

struct Case {
  int64_t head_dim, n_head, n_kv_head, n_queries, n_keys, n_samples;
  KeySight sight;
};

struct Values {
  std::vector<float> q, k, v;

  explicit Values(const Case& c) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, int64_t n) {
      for (int64_t i = 0; i < n; ++i) values.push_back(normal(random));
    };
    fill(q, c.head_dim * c.n_head * c.n_queries * c.n_samples);
    fill(k, c.head_dim * c.n_kv_head * c.n_keys * c.n_samples);
    fill(v, c.head_dim * c.n_kv_head * c.n_keys * c.n_samples);
  }
};

std::vector<float> attend(const KernelTable& kernels, const Case& c, const Values& x, int n_threads) {
  Graph graph(16);
  DenseAttentions operations;
  Tensor q = graph.input(GGML_TYPE_F32, {c.head_dim, c.n_head, c.n_queries, c.n_samples}, "q");
  Tensor k = graph.input(GGML_TYPE_F32, {c.head_dim, c.n_kv_head, c.n_keys, c.n_samples}, "k");
  Tensor v = graph.input(GGML_TYPE_F32, {c.head_dim, c.n_kv_head, c.n_keys, c.n_samples}, "v");
  Tensor out = operations.attend(graph.context(), kernels, q, k, v, c.sight, 0.25f);
  return run(graph, out, n_threads, [&] {
    ggml_backend_tensor_set(q, x.q.data(), 0, ggml_nbytes(q));
    ggml_backend_tensor_set(k, x.k.data(), 0, ggml_nbytes(k));
    ggml_backend_tensor_set(v, x.v.data(), 0, ggml_nbytes(v));
  });
}

bool sees(const Case& c, int64_t sample, int64_t i, int64_t j) {
  if (c.sight.kind == KeySight::Kind::kBefore) return j <= i;
  if (c.sight.kind == KeySight::Kind::kWindow) return std::abs(j - i) <= c.sight.window;
  return c.sight.key_lengths.empty() || j < c.sight.key_lengths[static_cast<std::size_t>(sample)];
}

std::vector<double> twin(const Case& c, const Values& x) {
  std::vector<double> out;
  const auto at = [&](const std::vector<float>& values, int64_t n_head, int64_t n, int64_t sample, int64_t i,
                      int64_t head) { return values.data() + ((sample * n + i) * n_head + head) * c.head_dim; };
  for (int64_t sample = 0; sample < c.n_samples; ++sample)
    for (int64_t i = 0; i < c.n_queries; ++i)
      for (int64_t head = 0; head < c.n_head; ++head) {
        const int64_t kv_head = head / (c.n_head / c.n_kv_head);
        const float* q = at(x.q, c.n_head, c.n_queries, sample, i, head);
        std::vector<double> sum(static_cast<std::size_t>(c.head_dim));
        double total = 0;
        for (int64_t j = 0; j < c.n_keys; ++j) {
          if (!sees(c, sample, i, j)) continue;
          const float* k = at(x.k, c.n_kv_head, c.n_keys, sample, j, kv_head);
          const float* v = at(x.v, c.n_kv_head, c.n_keys, sample, j, kv_head);
          double dot = 0;
          for (int64_t d = 0; d < c.head_dim; ++d) dot += static_cast<double>(q[d]) * k[d];
          const double weight = std::exp(0.25 * dot);
          total += weight;
          for (int64_t d = 0; d < c.head_dim; ++d) sum[static_cast<std::size_t>(d)] += weight * v[d];
        }
        for (const double value : sum) out.push_back(value / total);
      }
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{16, 4, 2, 70, 70, 1, {}},
                                     {24, 6, 2, 33, 33, 2, {KeySight::Kind::kBefore, 0, {}}},
                                     {16, 2, 1, 300, 300, 2, {KeySight::Kind::kWindow, 8, {}}},
                                     {16, 2, 2, 5, 5, 1, {KeySight::Kind::kWindow, 100, {}}},
                                     {32, 4, 1, 20, 90, 3, {KeySight::Kind::kAll, 0, {90, 1, 47}}}};
  return all;
}

class DenseAttentionKernels : public testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override {
    if (!runs_here(*GetParam())) GTEST_SKIP() << "this CPU has no " << GetParam()->name;
  }
};

TEST_P(DenseAttentionKernels, AgreesWithADoublePrecisionTwin) {
  for (const Case& c : cases()) {
    const Values x(c);
    EXPECT_LT(nmse(attend(*GetParam(), c, x, 1), twin(c, x)), 1e-11) << c.n_keys;
  }
}

TEST_P(DenseAttentionKernels, IsTheSameOnEveryNumberOfThreads) {
  for (const Case& c : cases()) {
    const Values x(c);
    EXPECT_EQ(attend(*GetParam(), c, x, 3), attend(*GetParam(), c, x, 1)) << c.n_keys;
  }
}

// What a sample does not see may be anything.
TEST_P(DenseAttentionKernels, IsUntouchedByKeysBeyondASamplesLength) {
  const Case& c = cases().back();
  Values x(c);
  const auto wanted = attend(*GetParam(), c, x, 1);
  const auto spoil = [&](std::vector<float>& values) {
    const int64_t row = c.head_dim * c.n_kv_head;
    for (int64_t j = 1; j < c.n_keys; ++j)
      std::fill_n(values.begin() + (c.n_keys + j) * row, row, j % 2 == 0 ? 1e20f : NAN);
  };
  spoil(x.k);
  spoil(x.v);
  EXPECT_EQ(attend(*GetParam(), c, x, 2), wanted);
}

INSTANTIATE_TEST_SUITE_P(All, DenseAttentionKernels, testing::ValuesIn(all_kernels()), [](const auto& test) {
  std::string name = test.param->name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace hocket::test
