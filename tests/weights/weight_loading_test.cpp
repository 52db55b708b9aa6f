// Tensors filled from a source: as they are, as F32 and packed, by one thread and by several, and what stops it.
#include "weights/weight_loading.h"

#include <ggml-backend.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <random>

#include "compute/kernels/pack.h"
#include "compute/packed_matrix.h"

namespace hocket {
namespace {

// Tensors of bytes in memory, which are mapped or have to be read.
class MemorySource : public WeightSource {
 public:
  explicit MemorySource(bool is_mapped) : is_mapped_(is_mapped) {}

  const TensorInfo* add(std::string name, ggml_type type, const Shape& shape) {
    TensorInfo& info = infos_.emplace_back();
    info.name = std::move(name);
    info.type = type;
    info.n_dims = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), info.ne.begin());
    info.n_bytes = ggml_row_size(type, info.ne[0]) * static_cast<uint64_t>(info.ne[1] * info.ne[2] * info.ne[3]);
    std::vector<std::byte>& data = data_[&info];
    data.resize(info.n_bytes);
    // No byte of an exponent is such that a number of half or full precision is not finite.
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_() % 60);
    return &info;
  }
  const std::vector<std::byte>& data(const TensorInfo* info) const { return data_.at(info); }

  const TensorInfo* find(std::string_view, const Shape&, bool) override { return nullptr; }
  std::span<const std::byte> mapped(const TensorInfo& tensor) const override {
    return is_mapped_ ? std::span<const std::byte>(data_.at(&tensor)) : std::span<const std::byte>();
  }
  Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const override {
    ++n_reads;
    if (tensor.name == failing) return Error(ErrorCode::kIo, "cannot be read", tensor.name);
    std::memcpy(out.data(), data_.at(&tensor).data(), out.size());
    return {};
  }
  void drop_pages(const TensorInfo&) const override { ++n_drops; }

  std::string failing;
  mutable std::atomic<int> n_reads = 0, n_drops = 0;

 private:
  bool is_mapped_;
  std::deque<TensorInfo> infos_;
  std::map<const TensorInfo*, std::vector<std::byte>> data_;
  std::mt19937 random_{3};
};

class Loading {
 public:
  explicit Loading(bool is_mapped) : source(is_mapped) {
    ggml_init_params params{};
    params.mem_size = 8 * ggml_tensor_overhead();
    params.no_alloc = true;
    context_ = ggml_init(params);
    plain_ = source.add("plain", GGML_TYPE_F32, {64, 3});
    halves_ = source.add("halves", GGML_TYPE_F16, {100});
    // More than one piece of a mapping, and rows that fill no whole group.
    matrix_ = source.add("matrix", GGML_TYPE_Q4_0, {4096, 2100, 2});
    weights = {{plain_, tensor(GGML_TYPE_F32, *plain_), nullptr, false},
               {halves_, tensor(GGML_TYPE_F32, *halves_), nullptr, true}};
    buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, ggml_backend_cpu_buffer_type());
    packed_ = *PackedMatrix::describe(*all_kernels().back(), GGML_TYPE_Q4_0, 4096, 2100, 2);
    storage_.resize(packed_.size() + kPackedAlignment);
    packed_.data = aligned(storage_);
    weights.push_back({matrix_, nullptr, &packed_, false});
  }
  ~Loading() {
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  void expect_filled() {
    EXPECT_EQ(0, std::memcmp(weights[0].tensor->data, source.data(plain_).data(), plain_->n_bytes));
    std::vector<float> floats(100);
    ggml_get_type_traits(GGML_TYPE_F16)->to_float(source.data(halves_).data(), floats.data(), 100);
    EXPECT_EQ(0, std::memcmp(weights[1].tensor->data, floats.data(), 400));
    PackedMatrix expected = packed_;
    std::vector<std::byte> storage(storage_.size());
    expected.data = aligned(storage);
    expected.pack_groups(source.data(matrix_).data(), 0, expected.n_groups() * 2);
    EXPECT_EQ(0, std::memcmp(packed_.data, expected.data, expected.size()));
  }

  MemorySource source;
  std::vector<WeightToLoad> weights;

 private:
  Tensor tensor(ggml_type type, const TensorInfo& info) {
    return ggml_new_tensor(context_, type, info.n_dims, info.ne.data());
  }
  static std::byte* aligned(std::vector<std::byte>& storage) {
    return storage.data() +
           (kPackedAlignment - reinterpret_cast<uintptr_t>(storage.data()) % kPackedAlignment) % kPackedAlignment;
  }

  ggml_context* context_;
  ggml_backend_buffer_t buffer_;
  const TensorInfo *plain_, *halves_, *matrix_;
  PackedMatrix packed_{};
  std::vector<std::byte> storage_;
};

TEST(WeightLoading, FillsTensorsOfEveryKind) {
  for (const bool is_mapped : {true, false})
    for (const int n_threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << (is_mapped ? "mapped, " : "read, ") << n_threads << " threads");
      Loading loading(is_mapped);
      std::vector<float> progress;
      const auto loaded = load_weights(loading.source, loading.weights, n_threads, [&](float done) {
        progress.push_back(done);
        return true;
      });
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      loading.expect_filled();
      EXPECT_EQ(loading.source.n_reads, is_mapped ? 0 : 3) << "each once, whole";
      EXPECT_EQ(loading.source.n_drops, 3) << "each when it is filled";
      EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
      ASSERT_FALSE(progress.empty());
      EXPECT_NEAR(progress.back(), 1, 1e-5);
      EXPECT_GT(progress.size(), is_mapped ? 3u : 2u) << "a large weight that is mapped is packed in pieces";
    }
}

TEST(WeightLoading, StopsWhenItIsCancelled) {
  Loading loading(true);
  int n_calls = 0;
  const auto loaded = load_weights(loading.source, loading.weights, 2, [&](float) { return ++n_calls < 2; });
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kCancelled);
  EXPECT_LE(n_calls, 3) << "a piece that another thread had begun may end";
}

TEST(WeightLoading, PassesOnWhatTheSourceSays) {
  Loading loading(false);
  loading.source.failing = "halves";
  const auto loaded = load_weights(loading.source, loading.weights, 2, nullptr);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kIo);
  EXPECT_EQ(loaded.error().param, "halves");
}

TEST(WeightLoading, OfNothingIsDone) {
  Loading loading(true);
  EXPECT_TRUE(load_weights(loading.source, {}, 4, [](float) { return false; }).ok());
}

}  // namespace
}  // namespace hocket
