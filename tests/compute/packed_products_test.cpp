// Products with packed matrices in a graph: against double precision, on several threads, with shared activations.
#include "compute/packed_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/graph_run.h"
#include "support/numbers.h"
#include "support/packed_weights.h"

namespace hocket::test {
namespace {

// 8-bit activations: an NMSE of 1e-5 to 1e-4.
constexpr double kActivationsOf8Bits = 2e-4;

const KernelTable& fastest() {
  const KernelTable* kernels = find_kernels("auto");
  return kernels ? *kernels : *all_kernels().back();
}

// A weight of a model: a tensor that stands for packed weights.
class Weight {
 public:
  Weight(PackedFormat format, int64_t n_in, int64_t n_out, int64_t n_expert, std::mt19937& random)
      : packed(fastest(), format, n_in, n_out, n_expert, random) {
    ggml_init_params params{};
    params.mem_size = 2 * ggml_tensor_overhead();
    params.no_alloc = true;
    context_ = ggml_init(params);
    tensor = ggml_new_tensor_3d(context_, ggml_type_of(format), n_in, n_out, n_expert);
    buffer_ = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 64);
    tensor->buffer = buffer_;
    tensor->data = packed.matrix.data;
    set_packed(tensor, &packed.matrix);
  }
  ~Weight() {
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }

  PackedWeights packed;
  Tensor tensor;

 private:
  ggml_context* context_;
  ggml_backend_buffer_t buffer_;
};

void set(Tensor tensor, const void* data) {
  ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

TEST(PackedProducts, AreTheSameOnEveryNumberOfThreadsAndInEveryBatch) {
  std::mt19937 random(11);
  for (const PackedFormat format : {PackedFormat::kQ4_0, PackedFormat::kQ2_K, PackedFormat::kQ4_K, PackedFormat::kQ6_K,
                                    PackedFormat::kIQ4_XS, PackedFormat::kMXFP4}) {
    SCOPED_TRACE(format_name(format));
    const int64_t n_in = 512, n_out = 150, n_most = 40;
    Weight w(format, n_in, n_out, 1, random);
    const std::vector<float> x = random_floats(random, static_cast<std::size_t>(n_in * n_most));
    std::vector<double> expected;
    for (int64_t c = 0; c < n_most; ++c)
      for (int64_t row = 0; row < n_out; ++row) {
        double sum = 0;
        for (int64_t k = 0; k < n_in; ++k)
          sum += w.packed.value(0, row, k) * static_cast<double>(x[static_cast<std::size_t>(c * n_in + k)]);
        expected.push_back(sum);
      }
    std::vector<float> first;
    for (const int n_threads : {1, 2, 3})
      for (const int64_t n : {n_most, int64_t{1}, int64_t{13}}) {
        Graph graph(64);
        Tensor input = graph.input(GGML_TYPE_F32, {n_in, n}, "x");
        const std::vector<float> got =
            run(graph, matmul(graph, w.tensor, input), n_threads, [&] { set(input, x.data()); }, 3);
        if (first.empty()) first = got;
        EXPECT_EQ(got, std::vector<float>(first.begin(), first.begin() + n * n_out)) << n << " columns";
      }
    EXPECT_LE(nmse(first, expected), kActivationsOf8Bits);
  }
}

TEST(PackedProducts, FromAnOutputOnAreThoseOfTheWhole) {
  std::mt19937 random(16);
  const int64_t n_in = 256, n_out = 50, n = 5;
  const std::vector<float> x = random_floats(random, static_cast<std::size_t>(n_in * n));
  for (const PackedFormat format : {PackedFormat::kQ4_K, PackedFormat::kF32}) {
    SCOPED_TRACE(format_name(format));
    Weight w(format, n_in, n_out, 1, random);
    const auto get = [&](int64_t first) {
      Graph graph(64);
      Tensor input = graph.input(GGML_TYPE_F32, {n_in, n}, "x");
      Tensor out = matmul_from(graph, w.tensor, input, first);
      EXPECT_EQ(out->ne[0], n_out - first);
      return run(graph, out, 2, [&] { set(input, x.data()); });
    };
    const std::vector<float> whole = get(0);
    for (const int64_t first : {16, 32, 48}) {
      std::vector<float> expected;
      for (int64_t c = 0; c < n; ++c)
        expected.insert(expected.end(), whole.begin() + c * n_out + first, whole.begin() + (c + 1) * n_out);
      EXPECT_EQ(get(first), expected) << "from " << first;
    }
  }
}

TEST(PackedProducts, ShareWhatTheyReadAlike) {
  std::mt19937 random(12);
  Weight a(PackedFormat::kQ4_0, 64, 32, 1, random), b(PackedFormat::kQ4_0, 64, 48, 1, random),
      c(PackedFormat::kQ8_0, 64, 16, 1, random);
  Graph graph(64);
  Tensor x = graph.input(GGML_TYPE_F32, {64, 3}, "x");
  for (const Weight* w : {&a, &b, &c}) graph.compute(matmul(graph, w->tensor, x));
  // Three products, and x rounded for two forms.
  EXPECT_EQ(ggml_graph_n_nodes(graph.nodes()), 5);
}

TEST(PackedProducts, ReadColumnsWhereverTheyLie) {
  std::mt19937 random(13);
  const int64_t n_in = 96, n_out = 18;
  Weight w(PackedFormat::kQ8_0, n_in, n_out, 1, random);
  const std::vector<float> x = random_floats(random, static_cast<std::size_t>(n_in * 2 * 5 * 3));
  // Columns [n_in, 5, 3] of a wider tensor.
  const auto get = [&](bool contiguous) {
    Graph graph(64);
    Tensor wide = graph.input(GGML_TYPE_F32, {2 * n_in, 5, 3}, "x");
    Tensor view = ggml_view_3d(graph.context(), wide, n_in, 5, 3, wide->nb[1], wide->nb[2], n_in * sizeof(float));
    if (contiguous) view = ggml_cont(graph.context(), view);
    Tensor out = matmul(graph, w.tensor, view);
    EXPECT_EQ(out->ne[1], 5);
    EXPECT_EQ(out->ne[2], 3);
    return run(graph, out, 2, [&] { set(wide, x.data()); });
  };
  EXPECT_EQ(get(false), get(true));
}

TEST(PackedProducts, LookUpRows) {
  std::mt19937 random(14);
  Weight w(PackedFormat::kQ6_K, 256, 50, 1, random);
  const std::vector<int32_t> ids{0, 49, 17, 16, 17};
  Graph graph(64);
  Tensor input = graph.input(GGML_TYPE_I32, {5}, "ids");
  const std::vector<float> got = run(graph, rows(graph, w.tensor, input), 2, [&] { set(input, ids.data()); });
  std::vector<float> expected;
  for (const int32_t id : ids)
    expected.insert(expected.end(), w.packed.values.begin() + id * 256, w.packed.values.begin() + (id + 1) * 256);
  EXPECT_EQ(got, expected);
}

struct ExpertCase {
  int64_t n_expert, n_used, n_tokens, n_x;  // n_x: 1, or n_used columns of x a token
};

TEST(PackedProducts, OfExpertsAreThoseOfEachTokenAlone) {
  std::mt19937 random(15);
  const int64_t n_in = 64, n_out = 40;
  for (const ExpertCase& c : {ExpertCase{8, 2, 1, 1}, ExpertCase{8, 2, 50, 1}, ExpertCase{4, 3, 33, 3},
                              ExpertCase{64, 1, 20, 1}, ExpertCase{2, 2, 70, 2}}) {
    SCOPED_TRACE(testing::Message() << c.n_expert << " experts, " << c.n_used << " used, " << c.n_tokens << " tokens");
    Weight w(PackedFormat::kQ4_1, n_in, n_out, c.n_expert, random);
    const std::vector<float> x = random_floats(random, static_cast<std::size_t>(n_in * c.n_x * c.n_tokens));
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < c.n_tokens; ++t) {
      std::vector<int32_t> all(static_cast<std::size_t>(c.n_expert));
      for (std::size_t e = 0; e < all.size(); ++e) all[e] = static_cast<int32_t>(e);
      std::shuffle(all.begin(), all.end(), random);
      ids.insert(ids.end(), all.begin(), all.begin() + c.n_used);
    }
    const auto get = [&](int64_t first, int64_t n_tokens, int n_threads) {
      Graph graph(64);
      Tensor input = graph.input(GGML_TYPE_F32, {n_in, c.n_x, n_tokens}, "x");
      Tensor chosen = graph.input(GGML_TYPE_I32, {c.n_used, n_tokens}, "ids");
      return run(graph, matmul_experts(graph, w.tensor, input, chosen), n_threads, [&] {
        set(input, x.data() + first * c.n_x * n_in);
        set(chosen, ids.data() + first * c.n_used);
      });
    };
    const std::vector<float> together = get(0, c.n_tokens, 2);
    EXPECT_EQ(together, get(0, c.n_tokens, 1));
    std::vector<float> alone;
    for (int64_t t = 0; t < c.n_tokens; ++t) {
      const std::vector<float> one = get(t, 1, 1);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    EXPECT_EQ(together, alone);
    std::vector<double> expected;
    for (int64_t t = 0; t < c.n_tokens; ++t)
      for (int64_t u = 0; u < c.n_used; ++u)
        for (int64_t row = 0; row < n_out; ++row) {
          double sum = 0;
          const int64_t column = t * c.n_x + (c.n_x == 1 ? 0 : u);
          for (int64_t k = 0; k < n_in; ++k)
            sum += w.packed.value(ids[static_cast<std::size_t>(t * c.n_used + u)], row, k) *
                   static_cast<double>(x[static_cast<std::size_t>(column * n_in + k)]);
          expected.push_back(sum);
        }
    EXPECT_LE(nmse(together, expected), kActivationsOf8Bits);
  }
}

}  // namespace
}  // namespace hocket::test
