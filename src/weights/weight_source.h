// weights/weight_source.h: where the tensors of a model come from: a file, or a generator for tests and benches.
//
// Threads  find() by one user; read() from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

using Shape = std::vector<int64_t>;  // ggml order; no trailing ones needed

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The tensor of this name, or nullptr. `wanted` is the shape that the architecture expects; a file's tensor may
  // differ.
  virtual const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) = 0;
  // The bytes in place, or empty when they have to be read.
  virtual std::span<const std::byte> mapped(const TensorInfo& tensor) const { return {}; }
  // All n_bytes of the tensor.
  virtual Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const = 0;
  virtual void drop_pages(const TensorInfo& tensor) const {}
};

class FileWeights : public WeightSource {
 public:
  explicit FileWeights(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}
  const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override;
  std::span<const std::byte> mapped(const TensorInfo& tensor) const override;
  Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const override;
  void drop_pages(const TensorInfo& tensor) const override;

 private:
  std::shared_ptr<const GgufFile> file_;
};

// Random F32 weights of whatever is asked for, the same for the same seed and name. Norm weights are near 1, matrices
// scaled by 1/√n_in, so that activations stay near unit size. Optional tensors exist when `with_optional`.
class SyntheticWeights : public WeightSource {
 public:
  explicit SyntheticWeights(uint64_t seed, bool with_optional = false) : seed_(seed), with_optional_(with_optional) {}
  const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override;
  Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const override;
  // Everything that was asked for, in order: what a file of this model would contain.
  const std::deque<TensorInfo>& made() const { return made_; }

 private:
  uint64_t seed_;
  bool with_optional_;
  std::deque<TensorInfo> made_;
};

}  // namespace hocket
