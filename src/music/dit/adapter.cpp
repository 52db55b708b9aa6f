#include "music/dit/adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/log.h"
#include "music/blocks/layer_sizes.h"
#include "music/solvers/noise.h"

namespace hocket {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRank = 1 << 16;

// "base_model.model.layers.0.q.lora_A.weight" → "decoder.layers.0.q.weight"; `end` is where the module's name stops.
std::string base_name(std::string key, std::size_t end) {
  key.resize(end);
  for (const std::string_view prefix : {"base_model.model.", "diffusion_model."})
    if (key.starts_with(prefix)) {
      key.erase(0, prefix.size());
      break;
    }
  if (!key.starts_with("decoder.")) key = "decoder." + key;
  return key + ".weight";
}

// alpha of adapter_config.json, an integer above 0.
std::optional<double> configured_alpha(const fs::path& folder) {
  std::ifstream in(folder / "adapter_config.json");
  if (!in) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto config = parse_json(text);
  if (!config.ok() || !config->is_object()) return std::nullopt;
  for (const char* key : {"lora_alpha", "alpha"})
    if (const auto at = config->find(key); at != config->end() && at->is_number_integer() && at->get<int64_t>() > 0)
      return static_cast<double>(at->get<int64_t>());
  return std::nullopt;
}

float bf16(double value) {
  return round_to_bfloat16(static_cast<float>(value));
}

// a [n, k] · b [k, m], each entry of a and b as given, the sums in double precision.
std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, std::size_t n, std::size_t k,
                            std::size_t m) {
  std::vector<double> out(n * m, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t r = 0; r < k; ++r) {
      const double left = a[i * k + r];
      const float* right = b.data() + r * m;
      double* row = out.data() + i * m;
      for (std::size_t j = 0; j < m; ++j) row[j] += left * right[j];
    }
  return out;
}

// Floats into a tensor's own type.
Result<void> encode(const TensorInfo& tensor, const std::vector<float>& values, std::span<std::byte> out) {
  const auto n = static_cast<int64_t>(values.size());
  switch (tensor.type) {
    case GGML_TYPE_F32:
      std::memcpy(out.data(), values.data(), out.size());
      return {};
    case GGML_TYPE_F16:
      ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(out.data()), n);
      return {};
    case GGML_TYPE_BF16:
      ggml_fp32_to_bf16_row(values.data(), reinterpret_cast<ggml_bf16_t*>(out.data()), n);
      return {};
    default:
      if (!ggml_is_quantized(tensor.type) || ggml_quantize_requires_imatrix(tensor.type))
        return Error(ErrorCode::kUnsupported,
                     fmt::format("tensor {} has type {}, into which nothing can be merged", tensor.name,
                                 ggml_type_name(tensor.type)),
                     tensor.name);
      ggml_quantize_chunk(tensor.type, values.data(), out.data(), 0, n / tensor.ne[0], tensor.ne[0], nullptr);
      return {};
  }
}

}  // namespace

Result<std::shared_ptr<AdaptedWeights>> AdaptedWeights::open(std::shared_ptr<const GgufFile> base,
                                                             const std::string& path, float scale) {
  const bool folder = fs::is_directory(path);
  const fs::path file = folder ? fs::path(path) / "adapter_model.safetensors" : fs::path(path);
  std::shared_ptr<AdaptedWeights> adapted(new AdaptedWeights(std::move(base), scale));
  TRY_ASSIGN(adapted->file_, SafetensorsFile::open(file.string()));
  bool lokr = false;
  for (const auto& [name, tensor] : adapted->file_->tensors())
    lokr |= name.find(".lokr_w1") != std::string::npos || name.find(".lokr_w2") != std::string::npos;
  if (lokr) {
    TRY(adapted->find_lokr());
  } else {
    TRY(adapted->find_lora(file.parent_path().string()));
  }
  if (adapted->modules_.empty())
    return Error(ErrorCode::kInvalid,
                 fmt::format("adapter {} does not fit this model: model mismatch, {} modules left out", path,
                             adapted->n_skipped_),
                 "adapter");
  return adapted;
}

Result<double> AdaptedWeights::scalar(const std::string& name) const {
  const SafeTensor* tensor = file_->find(name);
  if (!tensor || tensor->n_elements() != 1)
    return Error(ErrorCode::kBadModel, fmt::format("tensor {} is no single number", name), name);
  TRY_ASSIGN(const std::vector<float> value, file_->read(*tensor));
  return static_cast<double>(value[0]);
}

void AdaptedWeights::add(const std::string& tensor, Module module) {
  const std::string why = misfit(module, base_->find(tensor));
  if (why.empty()) {
    modules_[tensor] = std::move(module);
    return;
  }
  ++n_skipped_;
  log_warn("adapter: {} is left out: {}", tensor, why);
}

std::string AdaptedWeights::misfit(const Module& m, const TensorInfo* tensor) const {
  if (!tensor) return "the model has no such tensor";
  if (tensor->ne[2] != 1 || tensor->ne[3] != 1) return "the model's tensor is no matrix";
  const int64_t n_in = tensor->ne[0], n_out = tensor->ne[1];
  for (const std::string* name : {&m.a, &m.b, &m.w1, &m.w2, &m.w2_a, &m.w2_b}) {
    if (name->empty()) continue;
    const SafeTensor* part = file_->find(*name);
    if (!part) return fmt::format("{} is missing", *name);
    if (part->shape.size() != 2) return fmt::format("{} is no matrix", *name);
    if (!SafetensorsFile::readable(*part)) return fmt::format("{} has type {}", *name, part->dtype);
  }
  if (!m.lokr) {
    if (m.a.empty() || m.b.empty()) return "one of its two matrices is missing";
    const auto &a = file_->find(m.a)->shape, &b = file_->find(m.b)->shape;
    if (a[0] != b[1] || a[0] < 1 || a[0] > kMostRank) return "the ranks of its matrices differ";
    if (a[1] != n_in || b[0] != n_out) return "its matrices do not have the shape of the tensor";
    return {};
  }
  if (m.w1.empty()) return "lokr_w1 is missing";
  const bool factored = !m.w2_a.empty() && !m.w2_b.empty();
  if (m.w2.empty() == !factored) return "it needs lokr_w2, or lokr_w2_a with lokr_w2_b";
  const auto& w1 = file_->find(m.w1)->shape;
  int64_t rows = 0, columns = 0;
  if (factored) {
    const auto &a = file_->find(m.w2_a)->shape, &b = file_->find(m.w2_b)->shape;
    if (a[1] != b[0]) return "the ranks of its matrices differ";
    rows = a[0];
    columns = b[1];
  } else {
    rows = file_->find(m.w2)->shape[0];
    columns = file_->find(m.w2)->shape[1];
  }
  if (w1[0] * rows != n_out || w1[1] * columns != n_in) return "its factors do not have the shape of the tensor";
  if (!m.dora.empty()) {
    const SafeTensor* dora = file_->find(m.dora);
    if (dora->n_elements() != static_cast<uint64_t>(n_out) || !SafetensorsFile::readable(*dora))
      return "dora_scale does not have one value for each row";
  }
  if (!std::isfinite(m.factor)) return "its alpha or rank is missing";
  return {};
}

Result<void> AdaptedWeights::find_lora(const std::string& config_folder) {
  std::map<std::string, Module> found;
  std::map<std::string, double> alphas;
  for (const auto& [key, tensor] : file_->tensors()) {
    if (key.ends_with(".alpha")) {
      // Of the format: a number without dimensions. One of shape [1] is something else.
      if (tensor.dtype != "F32" || !tensor.shape.empty()) continue;
      TRY_ASSIGN(alphas[base_name(key, key.size() - 6)], scalar(key));
      continue;
    }
    const std::size_t at = key.find(".lora_");
    if (at == std::string::npos) continue;
    Module& module = found[base_name(key, at)];
    if (key.find(".lora_A.") != std::string::npos || key.find(".lora_down.") != std::string::npos) module.a = key;
    if (key.find(".lora_B.") != std::string::npos || key.find(".lora_up.") != std::string::npos) module.b = key;
  }
  const std::optional<double> configured = configured_alpha(config_folder.empty() ? "." : config_folder);
  for (auto& [name, module] : found) {
    const SafeTensor* a = file_->find(module.a);
    const double rank = a && !a->shape.empty() && a->shape[0] > 0 ? static_cast<double>(a->shape[0]) : 1;
    const auto own = alphas.find(name);
    module.factor = (own != alphas.end() ? own->second : configured.value_or(rank)) / rank;
    add(name, std::move(module));
  }
  return {};
}

Result<void> AdaptedWeights::find_lokr() {
  std::optional<double> linear_dim;
  if (const auto config = parse_json(file_->metadata("lokr_config")); config.ok() && config->is_object())
    if (const auto at = config->find("linear_dim"); at != config->end() && at->is_number_integer())
      linear_dim = static_cast<double>(at->get<int64_t>());
  // Names of modules have underscores for dots, which cannot be undone: the model's names are made like them instead.
  for (const TensorInfo& tensor : base_->tensors()) {
    constexpr std::string_view kPrefix = "decoder.", kSuffix = ".weight";
    const std::string& name = tensor.name;
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size())
      continue;
    std::string stem = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    for (char& c : stem)
      if (c == '.') c = '_';
    stem = "lycoris_" + stem;
    const auto part = [&](const char* suffix) {
      const std::string key = stem + suffix;
      return file_->find(key) ? key : std::string();
    };
    Module module;
    module.lokr = true;
    module.w1 = part(".lokr_w1");
    module.w2 = part(".lokr_w2");
    module.w2_a = part(".lokr_w2_a");
    module.w2_b = part(".lokr_w2_b");
    module.dora = part(".dora_scale");
    if (module.w1.empty() && module.w2.empty() && module.w2_a.empty()) continue;
    module.factor = std::nan("");
    const SafeTensor* low = module.w2_a.empty() ? nullptr : file_->find(module.w2_a);
    const std::optional<double> rank =
        low && low->shape.size() == 2 ? std::optional<double>(static_cast<double>(low->shape[1])) : linear_dim;
    if (const std::string alpha = part(".alpha"); !alpha.empty() && rank && *rank > 0) {
      const auto value = scalar(alpha);
      if (value.ok()) module.factor = *value / *rank;
    }
    add(name, std::move(module));
  }
  return {};
}

Result<std::vector<float>> AdaptedWeights::delta(const Module& m, int64_t n_in, int64_t n_out) const {
  const auto load = [&](const std::string& name) { return file_->read(*file_->find(name)); };
  const auto rows = static_cast<std::size_t>(n_out), columns = static_cast<std::size_t>(n_in);
  std::vector<float> change(rows * columns);
  if (!m.lokr) {
    TRY_ASSIGN(std::vector<float> a, load(m.a));
    TRY_ASSIGN(std::vector<float> b, load(m.b));
    for (float& value : a) value = round_to_bfloat16(value);
    for (float& value : b) value = round_to_bfloat16(value);
    const std::vector<double> sums = product(b, a, rows, a.size() / columns, columns);
    const double factor = m.factor * static_cast<double>(scale_);
    for (std::size_t i = 0; i < sums.size(); ++i) change[i] = bf16(factor * sums[i]);
    return change;
  }
  TRY_ASSIGN(const std::vector<float> w1, load(m.w1));
  const auto& shape1 = file_->find(m.w1)->shape;
  const auto c = static_cast<std::size_t>(n_out / shape1[0]), d = static_cast<std::size_t>(n_in / shape1[1]);
  std::vector<double> w2(c * d);
  if (m.w2.empty()) {
    TRY_ASSIGN(const std::vector<float> a, load(m.w2_a));
    TRY_ASSIGN(const std::vector<float> b, load(m.w2_b));
    w2 = product(a, b, c, a.size() / c, d);
  } else {
    TRY_ASSIGN(const std::vector<float> whole, load(m.w2));
    w2.assign(whole.begin(), whole.end());
  }
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      change[row * columns + column] = bf16(m.factor * w1[row / c * static_cast<std::size_t>(shape1[1]) + column / d] *
                                            w2[row % c * d + column % d]);
  return change;
}

std::span<const std::byte> AdaptedWeights::mapped(const TensorInfo& tensor) const {
  return modules_.contains(tensor.name) ? std::span<const std::byte>() : FileWeights::mapped(tensor);
}

Result<void> AdaptedWeights::read(const TensorInfo& tensor, std::span<std::byte> out) const {
  const auto found = modules_.find(tensor.name);
  if (found == modules_.end()) return FileWeights::read(tensor, out);
  const Module& module = found->second;
  constexpr double kDoraEps = 7.8125e-3;
  TRY_ASSIGN(std::vector<float> weight, read_tensor(*base_, tensor));
  TRY_ASSIGN(const std::vector<float> change, delta(module, tensor.ne[0], tensor.ne[1]));
  const auto n_in = static_cast<std::size_t>(tensor.ne[0]);
  std::vector<float> dora;
  if (!module.dora.empty()) {
    TRY_ASSIGN(dora, file_->read(*file_->find(module.dora)));
  }
  const double scale = scale_;
  for (std::size_t row = 0; row < static_cast<std::size_t>(tensor.ne[1]); ++row) {
    float* w = weight.data() + row * n_in;
    const float* d = change.data() + row * n_in;
    if (dora.empty()) {
      // LoRA's change holds the scale already.
      const double factor = module.lokr ? scale : 1.0;
      for (std::size_t i = 0; i < n_in; ++i) w[i] = static_cast<float>(w[i] + factor * d[i]);
      continue;
    }
    double length2 = 0;
    for (std::size_t i = 0; i < n_in; ++i) {
      const double sum = static_cast<double>(w[i]) + d[i];
      length2 += sum * sum;
    }
    const double factor = scale * (dora[row] / (std::sqrt(length2) + kDoraEps)) + (1.0 - scale);
    for (std::size_t i = 0; i < n_in; ++i) w[i] = static_cast<float>(factor * (static_cast<double>(w[i]) + d[i]));
  }
  return encode(tensor, weight, out);
}

}  // namespace hocket
