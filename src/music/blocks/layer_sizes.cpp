#include "music/blocks/layer_sizes.h"

#include <fmt/format.h>

#include <cstring>

namespace hocket {
namespace {

constexpr int64_t kMostHeadDim = 1024;
constexpr int64_t kMostWidth = 1 << 20;

Error bad(const TensorInfo& tensor, std::string_view why) {
  return Error(ErrorCode::kBadModel, fmt::format("tensor {}: {}", tensor.name, why), tensor.name);
}

}  // namespace

Result<const TensorInfo*> require_tensor(const GgufFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  if (!tensor) return Error(ErrorCode::kBadModel, fmt::format("tensor {} is missing", name), name);
  return tensor;
}

Result<std::vector<float>> read_tensor(const GgufFile& file, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.n_bytes);
  TRY(file.read(tensor, 0, bytes));
  std::vector<float> values(static_cast<std::size_t>(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]));
  if (tensor.type == GGML_TYPE_F32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  const ggml_type_traits* traits = ggml_get_type_traits(tensor.type);
  if (!traits->to_float)
    return bad(tensor, fmt::format("type {} cannot be read as numbers", ggml_type_name(tensor.type)));
  traits->to_float(bytes.data(), values.data(), static_cast<int64_t>(values.size()));
  return values;
}

Result<LayerSizes> LayerSizes::read(const GgufFile& file, const std::string& prefix, const std::string& norm) {
  LayerSizes sizes;
  TRY_ASSIGN(const TensorInfo* width, require_tensor(file, prefix + norm));
  TRY_ASSIGN(const TensorInfo* head, require_tensor(file, prefix + "self_attn.q_norm.weight"));
  TRY_ASSIGN(const TensorInfo* q, require_tensor(file, prefix + "self_attn.q_proj.weight"));
  TRY_ASSIGN(const TensorInfo* k, require_tensor(file, prefix + "self_attn.k_proj.weight"));
  TRY_ASSIGN(const TensorInfo* gate, require_tensor(file, prefix + "mlp.gate_proj.weight"));
  sizes.n_embd = width->ne[0];
  sizes.head_dim = head->ne[0];
  sizes.n_ff = gate->ne[1];
  if (sizes.n_embd < 1 || sizes.n_embd > kMostWidth) return bad(*width, "no such width can be");
  if (sizes.head_dim < 2 || sizes.head_dim % 2 != 0 || sizes.head_dim > kMostHeadDim)
    return bad(*head, fmt::format("a head has an even size up to {}, not {}", kMostHeadDim, sizes.head_dim));
  sizes.n_head = q->ne[1] / sizes.head_dim;
  sizes.n_kv_head = k->ne[1] / sizes.head_dim;
  if (sizes.n_head < 1 || q->ne[1] % sizes.head_dim != 0)
    return bad(*q, fmt::format("{} rows are no whole number of heads of {}", q->ne[1], sizes.head_dim));
  if (sizes.n_kv_head < 1 || k->ne[1] % sizes.head_dim != 0 || sizes.n_head % sizes.n_kv_head != 0)
    return bad(*k, fmt::format("{} rows do not divide {} heads of {}", k->ne[1], sizes.n_head, sizes.head_dim));
  return sizes;
}

}  // namespace hocket
