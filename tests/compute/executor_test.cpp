#include "compute/executor.h"

#include <gtest/gtest.h>

#include <vector>

#include "compute/device.h"

namespace hocket::test {
namespace {

struct Sum {
  Graph graph{64};
  Tensor a, b, out;
  explicit Sum(int64_t n) {
    a = graph.input(GGML_TYPE_F32, {n}, "a");
    b = graph.input(GGML_TYPE_F32, {n}, "b");
    out = ggml_add(graph.context(), ggml_mul(graph.context(), a, b), a);
    graph.output(out, "out");
  }
};

TEST(Executor, RunsAGraphAgainWithNewInputs) {
  auto executor = std::move(*Executor::create(*find_device("CPU"), 2, 64));
  Sum sum(3);
  ASSERT_TRUE(executor->allocate(sum.graph).ok());
  for (const float scale : {1.0f, 2.0f}) {
    const std::vector<float> a{scale, 2 * scale, 3 * scale}, b{4, 5, 6};
    ggml_backend_tensor_set(sum.a, a.data(), 0, ggml_nbytes(sum.a));
    ggml_backend_tensor_set(sum.b, b.data(), 0, ggml_nbytes(sum.b));
    ASSERT_TRUE(executor->run(sum.graph, CancelToken()).ok());
    std::vector<float> out(3);
    ggml_backend_tensor_get(sum.out, out.data(), 0, ggml_nbytes(sum.out));
    EXPECT_EQ(out, (std::vector<float>{5 * scale, 12 * scale, 21 * scale}));
  }
}

TEST(Executor, SharesThreadsWithAnother) {
  auto threads = std::move(*ThreadPool::create(2));
  auto first = std::move(*Executor::create(*find_device("CPU"), threads, 64));
  auto second = std::move(*Executor::create(*find_device("CPU"), threads, 64));
  EXPECT_EQ(second->n_threads(), 2);
  threads.reset();
  const auto square = [](Executor& executor, float x) {
    Sum sum(1);
    EXPECT_TRUE(executor.allocate(sum.graph).ok());
    for (Tensor input : {sum.a, sum.b}) ggml_backend_tensor_set(input, &x, 0, sizeof x);
    EXPECT_TRUE(executor.run(sum.graph, CancelToken()).ok());
    float out = 0;
    ggml_backend_tensor_get(sum.out, &out, 0, sizeof out);
    return out;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(square(*first, 2), 6);
    EXPECT_EQ(square(*second, 3), 12);
  }
  first.reset();
  EXPECT_EQ(square(*second, 4), 20);
}

TEST(Executor, MeasuresBeforeItTakes) {
  auto executor = std::move(*Executor::create(*find_device("CPU"), 1, 64));
  Sum small(1000), large(100000);
  const std::size_t bytes = executor->measure(large.graph);
  EXPECT_GE(bytes, 2 * 100000 * sizeof(float));  // the inputs; the sum may reuse their place
  EXPECT_LT(executor->measure(small.graph), bytes);
  EXPECT_EQ(executor->compute_bytes(), 0u);
  ASSERT_TRUE(executor->reserve(large.graph).ok());
  EXPECT_EQ(executor->compute_bytes(), bytes);
  Sum again(1000);
  ASSERT_TRUE(executor->allocate(again.graph).ok());
  EXPECT_EQ(executor->compute_bytes(), bytes);
}

TEST(Executor, CancelledRunSaysSo) {
  auto executor = std::move(*Executor::create(*find_device("CPU"), 2, 64));
  Sum sum(3);
  ASSERT_TRUE(executor->allocate(sum.graph).ok());
  CancelToken cancel;
  cancel.cancel();
  const auto ran = executor->run(sum.graph, cancel);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(executor->run(sum.graph, CancelToken()).ok());
}

TEST(Devices, UnknownNameListsWhatThereIs) {
  const auto device = find_device("NoSuchDevice7");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  EXPECT_NE(device.error().message.find("CPU"), std::string::npos);
  EXPECT_EQ(device.error().param, "device");
  EXPECT_FALSE(list_devices().empty());
  EXPECT_GE(physical_cores(), 1);
}

TEST(CacheTypes, NamesGoBothWays) {
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0})
    EXPECT_EQ(parse_cache_type(cache_type_name(type)), type);
  EXPECT_FALSE(parse_cache_type("q9").has_value());
}

}  // namespace
}  // namespace hocket::test
