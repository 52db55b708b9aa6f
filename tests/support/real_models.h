// tests/support/real_models.h: the pinned small models that scripts/test.sh fetches, and their weights as F32.
#pragma once

#include <ggml.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>

#include "weights/weight_source.h"

namespace hocket::test {

// Path of "smollm2" or "gemma3", or "" when the environment does not name it.
inline std::string real_model_path(const std::string& name) {
  const char* path = std::getenv(name == "smollm2" ? "HOCKET_TEST_SMOLLM2" : "HOCKET_TEST_GEMMA3");
  return path ? path : "";
}

// The weights of a file, dequantised exactly: what `llama-quantize IN OUT f32` would write.
class DequantisedWeights : public FileWeights {
 public:
  explicit DequantisedWeights(std::shared_ptr<const GgufFile> file) : FileWeights(std::move(file)) {}

  const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override {
    for (const auto& [original, info] : made_)
      if (info.name == name) return &info;
    const TensorInfo* original = FileWeights::find(name, wanted, optional);
    if (!original) return nullptr;
    TensorInfo info = *original;
    info.type = GGML_TYPE_F32;
    info.n_bytes = elements(info) * sizeof(float);
    return &made_.emplace_back(original, std::move(info)).second;
  }
  std::span<const std::byte> mapped(const TensorInfo&) const override { return {}; }
  Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const override {
    for (const auto& [original, info] : made_) {
      if (&info != &tensor) continue;
      std::vector<std::byte> bytes(original->n_bytes);
      TRY(FileWeights::read(*original, bytes));
      auto* floats = reinterpret_cast<float*>(out.data());
      if (original->type == GGML_TYPE_F32)
        std::copy(bytes.begin(), bytes.end(), out.begin());
      else
        ggml_get_type_traits(original->type)->to_float(bytes.data(), floats, static_cast<int64_t>(elements(info)));
      return {};
    }
    return Error(ErrorCode::kInternal, "unknown tensor", tensor.name);
  }

 private:
  static uint64_t elements(const TensorInfo& t) { return static_cast<uint64_t>(t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]); }
  std::deque<std::pair<const TensorInfo*, TensorInfo>> made_;
};

}  // namespace hocket::test
