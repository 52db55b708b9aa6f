#include "music/vae/derived_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "music/blocks/layer_sizes.h"

namespace hocket {
namespace {

constexpr std::size_t kMostTensors = 2048;

bool same_shape(const TensorInfo& info, const Shape& wanted) {
  for (std::size_t i = 0; i < info.ne.size(); ++i)
    if (info.ne[i] != (i < wanted.size() ? wanted[i] : 1)) return false;
  return true;
}

}  // namespace

DerivedWeights::DerivedWeights(std::shared_ptr<const GgufFile> file, const MusicCompute& compute)
    : file_(std::move(file)), device_(compute.device), kernels_(compute.own_kernels()) {
  ggml_init_params params{};
  params.mem_size = ggml_tensor_overhead() * kMostTensors;
  params.no_alloc = true;
  context_ = ggml_init(params);
  CHECK(context_ != nullptr);
}

DerivedWeights::~DerivedWeights() {
  if (buffer_) ggml_backend_buffer_free(buffer_);
  ggml_free(context_);
}

void DerivedWeights::fail(Error error) {
  if (status_.ok()) status_ = std::move(error);
}

const TensorInfo* DerivedWeights::require(const std::string& name) {
  const TensorInfo* info = file_->find(name);
  if (!info) fail(Error(ErrorCode::kBadModel, fmt::format("tensor {} is missing", name), name));
  return info;
}

Tensor DerivedWeights::declare(const Shape& shape, std::vector<Source> sources, Derive derive) {
  if (slots_.size() >= kMostTensors)
    return fail(Error(ErrorCode::kBadModel, "the network has too many tensors", sources.front().name)), nullptr;
  Slot slot;
  for (const Source& source : sources) {
    const TensorInfo* info = require(source.name);
    if (!info) return nullptr;
    if (!same_shape(*info, source.shape)) {
      fail(Error(ErrorCode::kBadModel,
                 fmt::format("tensor {} has shape [{}], expected [{}]", source.name, fmt::join(info->ne, ", "),
                             fmt::join(source.shape, ", ")),
                 source.name));
      return nullptr;
    }
    slot.sources.push_back(info);
  }
  slot.tensor = ggml_new_tensor(context_, GGML_TYPE_F32, static_cast<int>(shape.size()), shape.data());
  slot.derive = std::move(derive);
  slots_.push_back(std::move(slot));
  return slots_.back().tensor;
}

uint64_t DerivedWeights::weight_bytes() const {
  uint64_t n_bytes = 0;
  for (const Slot& slot : slots_) n_bytes += ggml_nbytes(slot.tensor);
  return n_bytes;
}

void DerivedWeights::place_without_data() {
  const auto type = ggml_backend_dev_buffer_type(device_);
  buffer_ = ggml_backend_buft_alloc_buffer(type, 0);
  for (const Slot& slot : slots_) {
    slot.tensor->buffer = buffer_;
    slot.tensor->data = reinterpret_cast<void*>(ggml_backend_buft_get_alignment(type));
  }
}

Result<void> DerivedWeights::load() {
  TRY(status_);
  buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, ggml_backend_dev_buffer_type(device_));
  if (!buffer_) return Error(ErrorCode::kOutOfMemory, "not enough memory for the weights of the VAE");
  ggml_backend_buffer_set_usage(buffer_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (const Slot& slot : slots_) {
    Sources sources;
    for (const TensorInfo* info : slot.sources) {
      TRY_ASSIGN(std::vector<float> values, read_tensor(*file_, *info));
      sources.push_back(std::move(values));
    }
    const std::vector<float> derived = slot.derive(sources);
    CHECK(derived.size() == static_cast<std::size_t>(ggml_nelements(slot.tensor)));
    for (const float value : derived)
      if (!std::isfinite(value))
        return Error(ErrorCode::kBadModel,
                     fmt::format("tensor {} has values that are not finite", slot.sources.front()->name),
                     slot.sources.front()->name);
    ggml_backend_tensor_set(slot.tensor, derived.data(), 0, ggml_nbytes(slot.tensor));
  }
  return {};
}

}  // namespace hocket
