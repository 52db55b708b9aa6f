// The gated delta rule: against double precision, with the same bits on every instruction set and in every division of
// the tokens, and the states that stay on the way.
#include "compute/delta_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compute/kernels/kernel_table.h"
#include "support/graph_run.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

struct Shape {
  int64_t dim, n_k_head, n_head, n_tokens, n_lanes;
  bool gate_of_keys;
};

struct Values {
  std::vector<float> q, k, v, gate, beta, before;

  Values(const Shape& s, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, int64_t n, float scale) {
      for (int64_t i = 0; i < n; ++i) values.push_back(normal(random) * scale);
    };
    const int64_t n = s.n_tokens * s.n_lanes;
    const float unit = 1.0f / std::sqrt(static_cast<float>(s.dim));
    fill(q, s.dim * s.n_k_head * n, unit);
    fill(k, s.dim * s.n_k_head * n, unit);
    fill(v, s.dim * s.n_head * n, 1.0f);
    fill(gate, (s.gate_of_keys ? s.dim : 1) * s.n_head * n, 1.0f);
    for (float& g : gate) g = -g * g * 0.2f;
    gate[0] = -200.0f;  // forgets everything
    fill(beta, s.n_head * n, 1.0f);
    for (float& b : beta) b = 1.0f / (1.0f + std::exp(-b));
    fill(before, s.dim * s.dim * s.n_head * s.n_lanes, 0.3f);
  }
};

// Tokens [first, first + n) of each lane, from `before` on; `before` becomes the states after them.
std::vector<float> run_part(const KernelTable& kernels, const Shape& s, const Values& x, int64_t first, int64_t n,
                            std::vector<float>& before, int64_t n_written, int n_threads) {
  Graph graph(64);
  ggml_context* c = graph.context();
  struct Input {
    Tensor tensor;
    const std::vector<float>* values;
    int64_t dim, n_head;
  };
  std::vector<Input> inputs;
  // Rows of more than is read, as a view of a mixed projection has them.
  const auto input = [&](const std::vector<float>& values, int64_t dim, int64_t n_head, const char* name) {
    Tensor wide = graph.input(GGML_TYPE_F32, {dim, n_head + 1, n, s.n_lanes}, name);
    inputs.push_back({wide, &values, dim, n_head});
    return ggml_view_4d(c, wide, dim, n_head, n, s.n_lanes, wide->nb[1], wide->nb[2], wide->nb[3], 0);
  };
  Tensor q = input(x.q, s.dim, s.n_k_head, "q"), k = input(x.k, s.dim, s.n_k_head, "k");
  Tensor v = input(x.v, s.dim, s.n_head, "v");
  Tensor gate = input(x.gate, s.gate_of_keys ? s.dim : 1, s.n_head, "gate"), beta = input(x.beta, 1, s.n_head, "beta");
  Tensor state = graph.input(GGML_TYPE_F32, {s.dim, s.dim, s.n_head, s.n_lanes}, "before");
  Tensor out = graph.delta_rules().run(c, kernels, q, k, v, gate, beta, state, n_written);
  std::vector<float> all = run(graph, out, n_threads, [&] {
    ggml_backend_tensor_set(state, before.data(), 0, ggml_nbytes(state));
    for (const Input& in : inputs)
      for (int64_t lane = 0; lane < s.n_lanes; ++lane)
        for (int64_t t = 0; t < n; ++t)
          ggml_backend_tensor_set(
              in.tensor, in.values->data() + (lane * s.n_tokens + first + t) * in.dim * in.n_head,
              static_cast<std::size_t>(t) * in.tensor->nb[2] + static_cast<std::size_t>(lane) * in.tensor->nb[3],
              static_cast<std::size_t>(in.dim * in.n_head) * sizeof(float));
  });
  const auto n_out = static_cast<std::ptrdiff_t>(s.dim * s.n_head * n * s.n_lanes);
  before.assign(all.begin() + n_out, all.begin() + n_out + static_cast<std::ptrdiff_t>(before.size()));
  return all;
}

struct Twin {
  std::vector<double> out;                  // [lane][token][head][dim]
  std::vector<std::vector<double>> states;  // after each token: [lane][head][value][key]
};

Twin twin(const Shape& s, const Values& x) {
  Twin result;
  result.out.resize(static_cast<std::size_t>(s.dim * s.n_head * s.n_tokens * s.n_lanes));
  std::vector<double> m(x.before.begin(), x.before.end());
  const int64_t n_gate = s.gate_of_keys ? s.dim : 1;
  for (int64_t t = 0; t < s.n_tokens; ++t) {
    for (int64_t lane = 0; lane < s.n_lanes; ++lane)
      for (int64_t h = 0; h < s.n_head; ++h) {
        const int64_t token = lane * s.n_tokens + t, key_head = token * s.n_k_head + h % s.n_k_head;
        const float *q = x.q.data() + key_head * s.dim, *k = x.k.data() + key_head * s.dim;
        const float* v = x.v.data() + (token * s.n_head + h) * s.dim;
        const float* gate = x.gate.data() + (token * s.n_head + h) * n_gate;
        const double beta = x.beta[static_cast<std::size_t>(token * s.n_head + h)];
        for (int64_t j = 0; j < s.dim; ++j) {
          double* row = m.data() + ((lane * s.n_head + h) * s.dim + j) * s.dim;
          double read = 0, out = 0;
          for (int64_t i = 0; i < s.dim; ++i) {
            row[i] *= std::exp(static_cast<double>(gate[n_gate == 1 ? 0 : i]));
            read += row[i] * static_cast<double>(k[i]);
          }
          const double change = beta * (static_cast<double>(v[j]) - read);
          for (int64_t i = 0; i < s.dim; ++i) {
            row[i] += static_cast<double>(k[i]) * change;
            out += row[i] * static_cast<double>(q[i]);
          }
          result.out[static_cast<std::size_t>((token * s.n_head + h) * s.dim + j)] =
              out / std::sqrt(static_cast<double>(s.dim));
        }
      }
    result.states.push_back(m);
  }
  return result;
}

class DeltaRuleKernels : public testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override {
    if (!runs_here(*GetParam())) GTEST_SKIP() << "not on this CPU";
  }
};

constexpr Shape kShapes[] = {{128, 2, 2, 25, 1, true},
                             {64, 2, 4, 19, 3, false},
                             {16, 1, 1, 40, 2, true},
                             {48, 3, 3, 8, 1, false},
                             {32, 1, 2, 1, 2, true}};

// Order of F32 sums: NMSE ≤ 1e-11.
TEST_P(DeltaRuleKernels, AreTheEquations) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(testing::Message() << "heads of " << s.dim << ", " << s.n_tokens << " tokens");
    const Values x(s, 3);
    const Twin expected = twin(s, x);
    const int64_t n_written = std::min<int64_t>(3, s.n_tokens);
    std::vector<float> before = x.before;
    const auto all = run_part(*GetParam(), s, x, 0, s.n_tokens, before, n_written, 2);
    const std::size_t n_out = expected.out.size(), n_state = x.before.size();
    ASSERT_EQ(all.size(), n_out + static_cast<std::size_t>(n_written) * n_state);
    EXPECT_LE(nmse(std::span(all).first(n_out), expected.out), 1e-11);
    for (std::size_t back = 0; back < static_cast<std::size_t>(n_written); ++back)
      EXPECT_LE(nmse(std::span(all).subspan(n_out + back * n_state, n_state),
                     expected.states[expected.states.size() - 1 - back]),
                1e-11)
          << "the state " << back << " tokens back";
  }
}

TEST_P(DeltaRuleKernels, GiveTheBitsOfTheReference) {
  for (const Shape& s : kShapes) {
    const Values x(s, 5);
    std::vector<float> before = x.before, reference_before = x.before;
    const auto reference = run_part(*all_kernels().back(), s, x, 0, s.n_tokens, reference_before, 1, 1);
    EXPECT_EQ(run_part(*GetParam(), s, x, 0, s.n_tokens, before, 1, 3), reference) << "heads of " << s.dim;
  }
}

TEST_P(DeltaRuleKernels, GiveTheSameBitsInEveryDivision) {
  const Shape s = kShapes[0];
  const Values x(s, 7);
  std::vector<float> whole_state = x.before;
  const auto whole = run_part(*GetParam(), s, x, 0, s.n_tokens, whole_state, 1, 2);
  for (const int64_t n_each : {1, 3, 8, 11}) {
    std::vector<float> state = x.before, out;
    for (int64_t first = 0; first < s.n_tokens; first += n_each) {
      const int64_t n = std::min(n_each, s.n_tokens - first);
      const auto part = run_part(*GetParam(), s, x, first, n, state, 1, 1);
      out.insert(out.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(s.dim * s.n_head * n));
    }
    EXPECT_TRUE(std::equal(out.begin(), out.end(), whole.begin())) << n_each << " at a time";
    EXPECT_EQ(state, whole_state) << n_each << " at a time";
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeltaRuleKernels, testing::ValuesIn(all_kernels()), [](const auto& test) {
  std::string name = test.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace hocket::test
