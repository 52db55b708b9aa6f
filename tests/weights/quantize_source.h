// A source of models to quantise, and the checks that every type gets.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "support/temp_folder.h"
#include "weights/gguf_writer.h"
#include "weights/quantize/quantize.h"

namespace hocket {

using Floats = std::vector<float>;

inline Floats random_values(std::size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  Floats out(n);
  for (float& value : out) value = normal(random);
  return out;
}

inline std::vector<std::byte> bytes_of(const Floats& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline Floats floats_of(const GgufFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (!tensor) return {};
  const auto data = file.data(*tensor);
  Floats out(static_cast<std::size_t>(tensor->ne[0] * tensor->ne[1] * tensor->ne[2] * tensor->ne[3]));
  if (tensor->type == GGML_TYPE_F32) {
    std::memcpy(out.data(), data.data(), data.size());
  } else {
    ggml_get_type_traits(tensor->type)->to_float(data.data(), out.data(), static_cast<int64_t>(out.size()));
  }
  return out;
}

// ‖a − b‖ / ‖b‖, each square weighed by `weights` of its place in a row where there are some.
inline double distance(const Floats& a, const Floats& b, const Floats& weights = {}) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double w = weights.empty() ? 1.0 : weights[i % weights.size()];
    error += w * (a[i] - b[i]) * (a[i] - b[i]);
    size += w * b[i] * b[i];
  }
  return std::sqrt(error / size);
}

// A file of F32 tensors under construction.
class Source {
 public:
  explicit Source(const std::string& arch, int64_t n_layer = 1) {
    metadata.set("general.architecture", arch);
    metadata.set(arch + ".block_count", n_layer);
    metadata.set(arch + ".attention.head_count", int64_t{8});
    metadata.set(arch + ".attention.head_count_kv", int64_t{4});
  }
  Source& add(const std::string& name, std::vector<int64_t> shape) {
    std::size_t n = 1;
    for (const int64_t size : shape) n *= static_cast<std::size_t>(size);
    return add(name, std::move(shape), random_values(n, static_cast<uint32_t>(tensors_.size() + 1)));
  }
  Source& add(const std::string& name, std::vector<int64_t> shape, Floats values) {
    tensors_.push_back({name, std::move(shape), std::move(values)});
    return *this;
  }
  // The image lives as long as this object.
  std::unique_ptr<GgufFile> file() {
    GgufWriter writer(metadata);
    for (const auto& t : tensors_)
      EXPECT_TRUE(writer.add_bytes(t.name, GGML_TYPE_F32, t.shape, bytes_of(t.values)).ok());
    auto image = writer.image();
    EXPECT_TRUE(image.ok());
    image_ = *image;
    auto file = GgufFile::parse(image_);
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }

  Metadata metadata;

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    Floats values;
  };
  std::vector<Tensor> tensors_;
  std::vector<std::byte> image_;
};

inline QuantizeOptions recipe(const char* name) {
  QuantizeOptions options;
  options.recipe = find_recipe(name);
  EXPECT_NE(options.recipe, nullptr) << name;
  return options;
}

// The types of a plan by name.
inline std::map<std::string, std::string> types(const GgufFile& file, const QuantizeOptions& options,
                                                const ImportanceMatrix* importance = nullptr) {
  const auto plan = plan_quantising(file, options, importance);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  std::map<std::string, std::string> out;
  if (plan.ok())
    for (const PlannedTensor& tensor : plan->tensors) out[tensor.from->name] = ggml_type_name(tensor.to);
  return out;
}

// Written and read again.
inline std::unique_ptr<GgufFile> quantised(const GgufFile& file, const QuantizeOptions& options,
                                           const TempFolder& folder, const ImportanceMatrix* importance = nullptr,
                                           int n_threads = 2) {
  const auto plan = plan_quantising(file, options, importance);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  if (!plan.ok()) return nullptr;
  const auto written = write_quantised(file, *plan, importance, folder.file("out.gguf"), n_threads, {});
  EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
  auto out = GgufFile::open(folder.file("out.gguf"));
  EXPECT_TRUE(out.ok());
  return out.ok() ? std::move(*out) : nullptr;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The older form of an importance matrix.
inline std::string legacy(const std::vector<std::pair<std::string, Floats>>& entries) {
  std::string out;
  put(out, static_cast<int32_t>(entries.size()));
  for (const auto& [name, values] : entries) {
    put(out, static_cast<int32_t>(name.size()));
    out += name;
    put(out, int32_t{3});
    put(out, static_cast<int32_t>(values.size()));
    for (const float value : values) put(out, value);
  }
  return out;
}

inline Result<ImportanceMatrix> importance_of(const TempFolder& folder, const std::string& bytes) {
  return ImportanceMatrix::open(folder.write("imatrix.dat", std::as_bytes(std::span(bytes))));
}

// Each type's error on normally distributed weights.
inline void check_errors(const std::map<std::string, double>& bounds) {
  constexpr int64_t kIn = 512, kOut = 48;
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {kIn, kOut});
  const auto file = source.file();
  const Floats before = floats_of(*file, "blk.0.ffn_up.weight");
  const TempFolder folder;
  const auto importance = importance_of(folder, legacy({{"blk.0.ffn_up.weight", Floats(kIn, 2.0f)}}));
  ASSERT_TRUE(importance.ok());
  for (const auto& [name, bound] : bounds) {
    ASSERT_TRUE(parse_weight_type(name).has_value()) << name;
    QuantizeOptions options = recipe("F16");
    options.tensor_types = {{"ffn_up", *parse_weight_type(name)}};
    const auto out = quantised(*file, options, folder, &*importance);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(out->find("blk.0.ffn_up.weight")->type, *parse_weight_type(name));
    const double error = distance(floats_of(*out, "blk.0.ffn_up.weight"), before);
    EXPECT_LE(error, bound) << name;
    EXPECT_EQ(error > 0, bound > 0) << name;
  }
}

// What is written is finite, or refused by name: never a crash, never a NaN.
inline void check_extremes(const std::vector<std::string>& names) {
  Source source("qwen3");
  Floats values = random_values(512 * 6, 4);
  for (std::size_t i = 0; i < 512; ++i) {
    values[i] = 0.0f;             // nothing
    values[512 + i] = 65'504.0f;  // all alike and large
    values[1024 + i] = i % 2 == 0 ? 65'504.0f : -65'504.0f;
    values[1536 + i] = 1e-38f * static_cast<float>(i);  // next to nothing
    values[2048 + i] = i == 77 ? 60'000.0f : 1e-6f;     // one outlier
  }
  source.add("blk.0.ffn_up.weight", {512, 6}, values);
  const auto file = source.file();
  const TempFolder folder;
  const auto importance = importance_of(folder, legacy({{"blk.0.ffn_up.weight", [] {
                                                           Floats w(512, 0.0f);
                                                           w[5] = 1e30f;
                                                           return w;
                                                         }()}}));
  ASSERT_TRUE(importance.ok());
  for (const std::string& name : names) {
    QuantizeOptions options = recipe("F32");
    options.tensor_types = {{"ffn_up", *parse_weight_type(name)}};
    for (const ImportanceMatrix* matrix : {&*importance, static_cast<const ImportanceMatrix*>(nullptr)}) {
      if (!matrix && ggml_quantize_requires_imatrix(*parse_weight_type(name))) continue;
      const auto plan = plan_quantising(*file, options, matrix);
      ASSERT_TRUE(plan.ok());
      const auto written = write_quantised(*file, *plan, matrix, folder.file("out.gguf"), 1, {});
      if (!written.ok()) {
        EXPECT_EQ(written.error().code, ErrorCode::kBadModel) << name;
        continue;
      }
      const auto out = GgufFile::open(folder.file("out.gguf"));
      ASSERT_TRUE(out.ok());
      for (const float value : floats_of(**out, "blk.0.ffn_up.weight")) ASSERT_TRUE(std::isfinite(value)) << name;
    }
  }
}

// Types whose tables take many seconds to make: the slow tests have them.
inline bool has_large_tables(const std::string& name) {
  return name.starts_with("IQ1") || name.starts_with("IQ2");
}

}  // namespace hocket
