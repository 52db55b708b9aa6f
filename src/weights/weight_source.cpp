#include "weights/weight_source.h"

#include <cmath>
#include <cstring>

namespace hocket {
namespace {

// SplitMix64: one well-mixed value a call, the same on every platform.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Uniform in [-1, 1).
float next_uniform(uint64_t& state) {
  return static_cast<float>(static_cast<double>(next_random(state) >> 11) * 0x1.0p-52 - 1.0);
}

uint64_t hash_name(std::string_view name, uint64_t seed) {
  uint64_t h = seed ^ 0xCBF29CE484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}

}  // namespace

const TensorInfo* FileWeights::find(std::string_view name, const Shape&, bool) {
  return file_->find(name);
}

std::span<const std::byte> FileWeights::mapped(const TensorInfo& tensor) const {
  return file_->data(tensor);
}

Result<void> FileWeights::read(const TensorInfo& tensor, std::span<std::byte> out) const {
  return file_->read(tensor, 0, out);
}

void FileWeights::drop_pages(const TensorInfo& tensor) const {
  file_->drop_pages(tensor);
}

const TensorInfo* SyntheticWeights::find(std::string_view name, const Shape& wanted, bool optional) {
  for (const TensorInfo& tensor : made_)
    if (tensor.name == name) return &tensor;
  if (optional && !with_optional_) return nullptr;
  TensorInfo tensor;
  tensor.name = name;
  tensor.n_dims = static_cast<int>(wanted.size());
  uint64_t n = 1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    tensor.ne[i] = wanted[i];
    n *= static_cast<uint64_t>(wanted[i]);
  }
  tensor.n_bytes = n * sizeof(float);
  return &made_.emplace_back(std::move(tensor));
}

Result<void> SyntheticWeights::read(const TensorInfo& tensor, std::span<std::byte> out) const {
  uint64_t state = hash_name(tensor.name, seed_);
  const bool is_vector = tensor.n_dims == 1;
  const bool is_norm = is_vector && tensor.name.find("norm") != std::string::npos;
  // A decay that grew would make every state overflow.
  const bool is_decay = tensor.name.ends_with("ssm_a");
  const float scale = is_vector ? 0.1f : std::sqrt(3.0f / static_cast<float>(tensor.ne[0]));
  const float base = is_norm || tensor.name.starts_with("rope_") ? 1.0f : 0.0f;
  for (std::size_t at = 0; at + sizeof(float) <= out.size(); at += sizeof(float)) {
    float value = base + scale * next_uniform(state);
    if (is_decay) value = -std::abs(value);
    std::memcpy(out.data() + at, &value, sizeof value);
  }
  return {};
}

}  // namespace hocket
