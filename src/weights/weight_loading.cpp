#include "weights/weight_loading.h"

#include <ggml-backend.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <thread>

#include "compute/packed_matrix.h"

namespace hocket {

namespace {

// Of the file, that a thread packs at a time.
constexpr int64_t kPieceBytes = 4 << 20;

// What a thread does at a time: a weight, or groups [first_group, end_group) of one that is packed.
struct Piece {
  const WeightToLoad* weight;
  std::atomic<int64_t>* n_left = nullptr;  // groups of the weight that are not packed yet
  int64_t first_group = 0, end_group = 0;
  uint64_t n_bytes = 0;  // of the file
};

class Loading {
 public:
  Loading(const WeightSource& source, const std::vector<WeightToLoad>& weights,
          const std::function<bool(float)>& progress)
      : source_(source), progress_(progress) {
    for (const WeightToLoad& weight : weights) divide(weight);
    for (const Piece& piece : pieces_) n_bytes_ += piece.n_bytes;
  }

  Result<void> run(int n_threads) {
    std::vector<std::thread> threads;
    for (int i = 1; i < std::min<int>(n_threads, static_cast<int>(pieces_.size())); ++i)
      threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    return std::move(status_);
  }

 private:
  void divide(const WeightToLoad& weight) {
    if (!weight.packed) {
      pieces_.push_back({&weight, nullptr, 0, 0, weight.info->n_bytes});
      return;
    }
    // What has to be read is read once, whole.
    const int64_t n_groups = weight.packed->n_groups() * weight.packed->n_expert;
    const auto n_bytes = static_cast<int64_t>(weight.info->n_bytes);
    const int64_t n =
        source_.mapped(*weight.info).empty() ? 1 : std::clamp<int64_t>(n_bytes / kPieceBytes, 1, n_groups);
    std::atomic<int64_t>& n_left = n_left_.emplace_back(n_groups);
    for (int64_t i = 0; i < n; ++i)
      pieces_.push_back(
          {&weight, &n_left, n_groups * i / n, n_groups * (i + 1) / n, static_cast<uint64_t>(n_bytes / n)});
  }

  void work() {
    for (std::size_t i = next_++; i < pieces_.size(); i = next_++) {
      const Piece& piece = pieces_[i];
      Result<void> filled;
      try {
        filled = fill(piece);
      } catch (const std::bad_alloc&) {
        filled = Error(ErrorCode::kOutOfMemory, "not enough memory to load a tensor", piece.weight->info->name);
      }
      const std::lock_guard lock(mutex_);
      n_done_ += piece.n_bytes;
      if (!filled.ok() && status_.ok()) status_ = std::move(filled);
      if (status_.ok() && progress_ && !progress_(static_cast<float>(n_done_) / static_cast<float>(n_bytes_)))
        status_ = Error(ErrorCode::kCancelled, "the load was cancelled");
      if (!status_.ok()) next_ = pieces_.size();
    }
  }

  Result<void> fill(const Piece& piece) const {
    const WeightToLoad& weight = *piece.weight;
    std::span<const std::byte> data = source_.mapped(*weight.info);
    std::vector<std::byte> bytes;
    if (data.empty()) {
      bytes.resize(weight.info->n_bytes);
      TRY(source_.read(*weight.info, bytes));
      data = bytes;
    }
    if (piece.n_left) {
      weight.packed->pack_groups(data.data(), piece.first_group, piece.end_group);
      const int64_t n = piece.end_group - piece.first_group;
      if (piece.n_left->fetch_sub(n) == n) source_.drop_pages(*weight.info);
      return {};
    }
    if (weight.to_f32) {
      std::vector<float> floats(static_cast<std::size_t>(ggml_nelements(weight.tensor)));
      ggml_get_type_traits(weight.info->type)
          ->to_float(data.data(), floats.data(), static_cast<int64_t>(floats.size()));
      ggml_backend_tensor_set(weight.tensor, floats.data(), 0, ggml_nbytes(weight.tensor));
    } else {
      ggml_backend_tensor_set(weight.tensor, data.data(), 0, ggml_nbytes(weight.tensor));
    }
    source_.drop_pages(*weight.info);
    return {};
  }

  const WeightSource& source_;
  const std::function<bool(float)>& progress_;
  std::deque<std::atomic<int64_t>> n_left_;  // of each packed weight
  std::vector<Piece> pieces_;
  uint64_t n_bytes_ = 0;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // of what follows
  uint64_t n_done_ = 0;
  Result<void> status_;
};

}  // namespace

Result<void> load_weights(const WeightSource& source, const std::vector<WeightToLoad>& weights, int n_threads,
                          const std::function<bool(float)>& progress) {
  return Loading(source, weights, progress).run(n_threads);
}

}  // namespace hocket
