// Attention over cells: against double precision, in every company, and untouched by what it does not see.
#include "compute/cell_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "compute/kernels/kernel_table.h"
#include "support/graph_run.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

struct Shape {
  int64_t dim_k, dim_v, n_head, n_kv_head, n_kv, n_queries;
  ggml_type cells;
  bool sinks = false;
  float softcap = 0;
};

struct Values {
  std::vector<float> q, k, v, sinks;
  std::vector<bool> seen;  // [n_queries][n_kv]

  Values(const Shape& s, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, int64_t n, bool as_cells) {
      for (int64_t i = 0; i < n; ++i) {
        float value = normal(random);
        if (as_cells && s.cells == GGML_TYPE_F16) value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(value));
        if (as_cells && s.cells == GGML_TYPE_BF16) value = ggml_bf16_to_fp32(ggml_fp32_to_bf16(value));
        values.push_back(value);
      }
    };
    fill(q, s.dim_k * s.n_head * s.n_queries, false);
    fill(k, s.dim_k * s.n_kv_head * s.n_kv, true);
    fill(v, s.dim_v * s.n_kv_head * s.n_kv, true);
    if (s.sinks) fill(sinks, s.n_head, false);
    for (int64_t i = 0; i < s.n_queries * s.n_kv; ++i) seen.push_back(random() % 3 != 0);
  }
};

std::vector<std::byte> as_type(const std::vector<float>& values, ggml_type type) {
  std::vector<std::byte> bytes(values.size() * ggml_type_size(type));
  if (type == GGML_TYPE_F32) std::memcpy(bytes.data(), values.data(), bytes.size());
  if (type == GGML_TYPE_F16)
    ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(bytes.data()),
                          static_cast<int64_t>(values.size()));
  if (type == GGML_TYPE_BF16)
    ggml_fp32_to_bf16_row(values.data(), reinterpret_cast<ggml_bf16_t*>(bytes.data()),
                          static_cast<int64_t>(values.size()));
  return bytes;
}

// Queries [first, first + n) of the values.
std::vector<float> attend(const KernelTable& kernels, const Shape& s, const Values& x, int64_t first, int64_t n,
                          int n_threads, const std::vector<int32_t>& cells_in_order = {}) {
  Graph graph(32);
  ggml_context* c = graph.context();
  Tensor q = graph.input(GGML_TYPE_F32, {s.dim_k, s.n_head, n}, "q");
  Tensor k = graph.input(s.cells, {s.dim_k, s.n_kv_head, s.n_kv}, "k");
  Tensor v = graph.input(s.cells, {s.dim_v, s.n_kv_head, s.n_kv}, "v");
  Tensor mask = graph.input(GGML_TYPE_F16, {s.n_kv, n}, "mask");
  Tensor sinks = s.sinks ? graph.input(GGML_TYPE_F32, {s.n_head}, "sinks") : nullptr;
  Tensor order = cells_in_order.empty() ? nullptr : graph.input(GGML_TYPE_I32, {s.n_kv}, "order");
  const auto heads_last = [&](Tensor t) { return ggml_permute(c, t, 0, 2, 1, 3); };
  Tensor out = graph.cell_attentions().attend(c, kernels, heads_last(q), heads_last(k), heads_last(v), mask,
                                              {1.0f / std::sqrt(static_cast<float>(s.dim_k)), s.softcap, sinks, order});
  std::vector<ggml_fp16_t> halves;
  for (int64_t i = first * s.n_kv; i < (first + n) * s.n_kv; ++i)
    halves.push_back(x.seen[static_cast<std::size_t>(i)] ? 0 : 0xFC00);
  return run(graph, out, n_threads, [&] {
    ggml_backend_tensor_set(q, x.q.data() + first * s.dim_k * s.n_head, 0, ggml_nbytes(q));
    ggml_backend_tensor_set(k, as_type(x.k, s.cells).data(), 0, ggml_nbytes(k));
    ggml_backend_tensor_set(v, as_type(x.v, s.cells).data(), 0, ggml_nbytes(v));
    ggml_backend_tensor_set(mask, halves.data(), 0, ggml_nbytes(mask));
    if (order) ggml_backend_tensor_set(order, cells_in_order.data(), 0, ggml_nbytes(order));
    if (sinks) ggml_backend_tensor_set(sinks, x.sinks.data(), 0, ggml_nbytes(sinks));
  });
}

std::vector<double> twin(const Shape& s, const Values& x) {
  std::vector<double> out;
  for (int64_t t = 0; t < s.n_queries; ++t)
    for (int64_t h = 0; h < s.n_head; ++h) {
      const int64_t kv_head = h / (s.n_head / s.n_kv_head);
      std::vector<double> score(static_cast<std::size_t>(s.n_kv), -INFINITY);
      double most = s.sinks ? x.sinks[static_cast<std::size_t>(h)] : -INFINITY;
      for (int64_t i = 0; i < s.n_kv; ++i) {
        if (!x.seen[static_cast<std::size_t>(t * s.n_kv + i)]) continue;
        double dot = 0;
        for (int64_t d = 0; d < s.dim_k; ++d)
          dot += static_cast<double>(x.q[static_cast<std::size_t>((t * s.n_head + h) * s.dim_k + d)]) *
                 x.k[static_cast<std::size_t>((i * s.n_kv_head + kv_head) * s.dim_k + d)];
        double& here = score[static_cast<std::size_t>(i)];
        here = dot / std::sqrt(static_cast<double>(s.dim_k));
        if (s.softcap != 0) here = s.softcap * std::tanh(here / s.softcap);
        most = std::max(most, here);
      }
      double total = s.sinks ? std::exp(x.sinks[static_cast<std::size_t>(h)] - most) : 0;
      for (double& value : score) total += value = std::exp(value - most);
      for (int64_t d = 0; d < s.dim_v; ++d) {
        double sum = 0;
        for (int64_t i = 0; i < s.n_kv; ++i)
          sum += score[static_cast<std::size_t>(i)] *
                 x.v[static_cast<std::size_t>((i * s.n_kv_head + kv_head) * s.dim_v + d)];
        out.push_back(sum / total);
      }
    }
  return out;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{64, 64, 6, 2, 80, 9, GGML_TYPE_F16},
                                      {128, 128, 4, 4, 200, 40, GGML_TYPE_F16},
                                      {24, 20, 8, 1, 33, 5, GGML_TYPE_F32, true},
                                      {72, 40, 40, 1, 100, 3, GGML_TYPE_BF16},
                                      {16, 16, 1, 1, 7, 1, GGML_TYPE_F16},
                                      {64, 64, 6, 2, 80, 9, GGML_TYPE_F16, false, 2.0f},
                                      {48, 32, 4, 4, 70, 5, GGML_TYPE_F32, true, 0.3f}};
  return all;
}

class CellAttentionKernels : public testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override {
    if (!runs_here(*GetParam())) GTEST_SKIP() << "this CPU has no " << GetParam()->name;
  }
};

TEST_P(CellAttentionKernels, AgreesWithADoublePrecisionTwin) {
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    const Shape& s = shapes()[i];
    SCOPED_TRACE(testing::Message() << "shape " << i);
    const Values x(s, static_cast<uint32_t>(i + 1));
    EXPECT_LE(nmse(attend(*GetParam(), s, x, 0, s.n_queries, 2), twin(s, x)), 1e-11);
  }
}

TEST_P(CellAttentionKernels, GivesEveryQueryTheSameBitsInEveryCompany) {
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    const Shape& s = shapes()[i];
    SCOPED_TRACE(testing::Message() << "shape " << i);
    const Values x(s, static_cast<uint32_t>(i + 1));
    const std::vector<float> together = attend(*GetParam(), s, x, 0, s.n_queries, 3);
    EXPECT_EQ(together, attend(*all_kernels().back(), s, x, 0, s.n_queries, 1)) << "the reference";
    const int64_t width = s.dim_v * s.n_head;
    for (int64_t t = 0; t < s.n_queries; ++t)
      EXPECT_EQ(attend(*GetParam(), s, x, t, 1, 1),
                std::vector<float>(together.begin() + t * width, together.begin() + (t + 1) * width));
  }
}

// Nor in which order its cells lie, as long as the order of their positions is told.
TEST_P(CellAttentionKernels, DoesNotDependOnTheOrderOfCells) {
  for (std::size_t n = 0; n < shapes().size(); ++n) {
    const Shape& s = shapes()[n];
    SCOPED_TRACE(testing::Message() << "shape " << n);
    const Values a(s, static_cast<uint32_t>(n + 5));
    Values b = a;
    std::vector<int32_t> order(static_cast<std::size_t>(s.n_kv));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(n)));
    const int64_t row_k = s.dim_k * s.n_kv_head, row_v = s.dim_v * s.n_kv_head;
    for (int64_t i = 0; i < s.n_kv; ++i) {
      const int64_t to = order[static_cast<std::size_t>(i)];
      std::copy_n(a.k.begin() + i * row_k, row_k, b.k.begin() + to * row_k);
      std::copy_n(a.v.begin() + i * row_v, row_v, b.v.begin() + to * row_v);
      for (int64_t t = 0; t < s.n_queries; ++t)
        b.seen[static_cast<std::size_t>(t * s.n_kv + to)] = a.seen[static_cast<std::size_t>(t * s.n_kv + i)];
    }
    const std::vector<float> expected = attend(*GetParam(), s, a, 0, s.n_queries, 2);
    EXPECT_EQ(attend(*GetParam(), s, b, 0, s.n_queries, 2, order), expected);
    std::iota(order.begin(), order.end(), 0);
    order[0] = -1;  // as they lie
    EXPECT_EQ(attend(*GetParam(), s, a, 0, s.n_queries, 2, order), expected);
  }
}

// The same sequence at the start of the cells, and spread among cells of others, some of which are no numbers.
TEST_P(CellAttentionKernels, DoesNotDependOnWhereASequenceLies) {
  const Shape near{64, 64, 4, 2, 50, 3, GGML_TYPE_F16}, far{64, 64, 4, 2, 170, 3, GGML_TYPE_F16};
  Values a(near, 21), b(far, 22);
  for (int64_t i = 0; i < 3 * 170; ++i) b.seen[static_cast<std::size_t>(i)] = false;
  b.q = a.q;
  const int64_t row = 64 * 2;
  for (int64_t i = 0; i < 50; ++i) {
    const int64_t to = 17 + 3 * i;
    std::copy_n(a.k.begin() + i * row, row, b.k.begin() + to * row);
    std::copy_n(a.v.begin() + i * row, row, b.v.begin() + to * row);
    for (int64_t t = 0; t < 3; ++t)
      b.seen[static_cast<std::size_t>(t * 170 + to)] = a.seen[static_cast<std::size_t>(t * 50 + i)];
  }
  const std::vector<float> expected = attend(*GetParam(), near, a, 0, 3, 2);
  EXPECT_EQ(attend(*GetParam(), far, b, 0, 3, 2), expected);
  for (const float bad : {std::nanf(""), INFINITY}) {
    std::fill_n(b.k.begin() + 18 * row, row, bad);
    std::fill_n(b.v.begin() + 18 * row, row, bad);
    EXPECT_EQ(attend(*GetParam(), far, b, 0, 3, 2), expected) << "beside " << bad;
  }
}

TEST_P(CellAttentionKernels, GivesZerosWhereNothingIsSeen) {
  const Shape s{32, 32, 2, 1, 40, 2, GGML_TYPE_F16};
  Values x(s, 23);
  for (int64_t i = 0; i < 40; ++i) x.seen[static_cast<std::size_t>(i)] = false;
  const std::vector<float> got = attend(*GetParam(), s, x, 0, 2, 2);
  EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 64), std::vector<float>(64, 0.0f));
  EXPECT_NE(got.back(), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(All, CellAttentionKernels, testing::ValuesIn(all_kernels()), [](const auto& test) {
  std::string name = test.param->name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace hocket::test
