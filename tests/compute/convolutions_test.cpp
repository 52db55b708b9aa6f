// Convolutions and the snake activation: against double precision, on every instruction set with the same bits.
#include "compute/convolutions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compute/kernels/kernel_table.h"
#include "support/graph_run.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

std::vector<float> random_floats(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(normal(random));
  return values;
}

struct Case {
  ConvolutionShape shape;
  int64_t n_x;  // columns of x
  bool with_bias, with_added;
};

struct Values {
  std::vector<float> weights, x, bias, added;

  explicit Values(const Case& c)
      : weights(random_floats(c.shape.n_out * c.shape.n_taps * c.shape.n_in, 1)),
        x(random_floats(c.shape.n_in * c.n_x, 2)),
        bias(random_floats(c.shape.n_out, 3)),
        added(random_floats(c.shape.n_out * c.shape.n, 4)) {}
  float weight(const ConvolutionShape& s, int64_t out, int64_t tap, int64_t in) const {
    return weights[static_cast<std::size_t>((out * s.n_taps + tap) * s.n_in + in)];
  }
};

std::vector<float> convolve(const KernelTable& kernels, const Case& t, const Values& values, int n_threads) {
  const ConvolutionShape& s = t.shape;
  Graph graph(32);
  Convolutions operations;
  const auto packed = packed_convolution(
      s.n_in, s.n_out, s.n_taps, [&](int64_t out, int64_t tap, int64_t in) { return values.weight(s, out, tap, in); });
  Tensor weights = graph.input(GGML_TYPE_F32, {static_cast<int64_t>(packed.size())}, "weights");
  // Rows do not lie one behind the other.
  Tensor wide = graph.input(GGML_TYPE_F32, {s.n_in + 3, t.n_x}, "x");
  Tensor x = ggml_view_2d(graph.context(), wide, s.n_in, t.n_x, wide->nb[1], 0);
  Tensor bias = t.with_bias ? graph.input(GGML_TYPE_F32, {s.n_out}, "bias") : nullptr;
  Tensor added = t.with_added ? graph.input(GGML_TYPE_F32, {s.n_out, s.n}, "added") : nullptr;
  Tensor out = operations.convolve(graph.context(), kernels, s, weights, x, bias, added);
  std::vector<float> spread;
  for (int64_t i = 0; i < t.n_x; ++i) {
    const auto row = values.x.begin() + i * s.n_in;
    spread.insert(spread.end(), row, row + s.n_in);
    spread.insert(spread.end(), 3, NAN);
  }
  return run(graph, out, n_threads, [&] {
    ggml_backend_tensor_set(weights, packed.data(), 0, ggml_nbytes(weights));
    ggml_backend_tensor_set(wide, spread.data(), 0, ggml_nbytes(wide));
    if (bias) ggml_backend_tensor_set(bias, values.bias.data(), 0, ggml_nbytes(bias));
    if (added) ggml_backend_tensor_set(added, values.added.data(), 0, ggml_nbytes(added));
  });
}

std::vector<double> twin(const Case& t, const Values& values) {
  const ConvolutionShape& s = t.shape;
  std::vector<double> result;
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t out = 0; out < s.n_out; ++out) {
      double sum = t.with_bias ? values.bias[static_cast<std::size_t>(out)] : 0;
      if (t.with_added) sum += values.added[static_cast<std::size_t>(i * s.n_out + out)];
      for (int64_t tap = 0; tap < s.n_taps; ++tap) {
        const int64_t column = i + s.first + tap * s.dilation;
        if (column < 0 || column >= t.n_x) continue;
        for (int64_t in = 0; in < s.n_in; ++in)
          sum += static_cast<double>(values.weight(s, out, tap, in)) *
                 values.x[static_cast<std::size_t>(column * s.n_in + in)];
      }
      result.push_back(sum);
    }
  return result;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{5, 33, 7, 1, -3, 40}, 40, true, false},      {{16, 16, 7, 9, -27, 131}, 131, true, true},
      {{8, 20, 7, 3, -9, 5}, 5, false, true},  // shorter than its own reach
      {{24, 2, 1, 1, 0, 50}, 50, false, false},      {{12, 48, 2, 1, -1, 31}, 30, true, false},
      {{300, 40, 3, 1, -1, 1000}, 1000, true, false}};
  return all;
}

class ConvolutionKernels : public testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override {
    if (!runs_here(*GetParam())) GTEST_SKIP() << "this CPU has no " << GetParam()->name;
  }
};

TEST_P(ConvolutionKernels, AgreeWithADoublePrecisionTwin) {
  for (const Case& t : cases()) {
    const Values values(t);
    EXPECT_LT(nmse(convolve(*GetParam(), t, values, 1), twin(t, values)), 1e-12) << t.shape.n_in;
  }
}

TEST_P(ConvolutionKernels, GiveTheBitsOfTheReferenceOnEveryNumberOfThreads) {
  for (const Case& t : cases()) {
    if (t.shape.n_in > 100) continue;  // slow without vectors
    const Values values(t);
    const auto wanted = convolve(*all_kernels().back(), t, values, 1);
    for (const int n_threads : {1, 3}) EXPECT_EQ(convolve(*GetParam(), t, values, n_threads), wanted) << t.shape.n_in;
  }
}

TEST_P(ConvolutionKernels, SnakeIsTheEquation) {
  constexpr int64_t kChannels = 21, kRows = 150;
  auto x = random_floats(kChannels * kRows, 5), frequency = random_floats(kChannels, 6),
       height = random_floats(kChannels, 7);
  for (float& value : x) value *= 20;
  Graph graph(16);
  Convolutions operations;
  Tensor tx = graph.input(GGML_TYPE_F32, {kChannels, kRows}, "x");
  Tensor tf = graph.input(GGML_TYPE_F32, {kChannels}, "frequency"),
         th = graph.input(GGML_TYPE_F32, {kChannels}, "height");
  Tensor out = operations.snake(graph.context(), *GetParam(), tx, tf, th);
  const auto got = run(graph, out, 2, [&] {
    ggml_backend_tensor_set(tx, x.data(), 0, ggml_nbytes(tx));
    ggml_backend_tensor_set(tf, frequency.data(), 0, ggml_nbytes(tf));
    ggml_backend_tensor_set(th, height.data(), 0, ggml_nbytes(th));
  });
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double f = frequency[i % kChannels], h = height[i % kChannels], s = std::sin(f * x[i]);
    // Half a unit in the last place of the product f · x moves the sine as far.
    const double slack = 1e-6 + std::fabs(f * x[i]) * 1.2e-7;
    ASSERT_NEAR(got[i], x[i] + h * s * s, slack * std::fabs(h) + std::fabs(x[i]) * 2e-7) << i;
  }
}

TEST_P(ConvolutionKernels, SnakeStaysBetweenItsBoundsForHugeValues) {
  const std::vector<float> x{1e30f, -1e30f, 3e38f, 1e10f}, ones{1, 1, 1, 1};
  std::vector<float> y(4);
  GetParam()->snake(x.data(), ones.data(), ones.data(), 4, y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_GE(y[i], x[i]);
    EXPECT_LE(y[i], x[i] + std::max(1.01f, std::fabs(x[i]) * 1e-6f));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionKernels, testing::ValuesIn(all_kernels()), [](const auto& test) {
  std::string name = test.param->name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace hocket::test
