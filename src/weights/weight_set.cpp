#include "weights/weight_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ggml-cpu.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compute/device.h"
#include "compute/kernels/kernel_table.h"
#include "compute/packed_matrix.h"
#include "weights/weight_loading.h"

namespace hocket {

namespace {

constexpr std::size_t kTensorsPerContext = 512;
constexpr std::size_t kHostAlignment = 32;  // what ggml's CPU code asks of tensor data
// Buffers are taken in pieces, so that one failed request does not need the whole model in one block.
constexpr uint64_t kBufferBytes = 1ull << 30;

// Weights are read from end to end in every step: large pages save the misses of the address translation.
void prefer_large_pages(ggml_backend_buffer_t buffer) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t kLargePage = 2 << 20;
  if (!ggml_backend_buffer_is_host(buffer)) return;
  const auto base = reinterpret_cast<uintptr_t>(ggml_backend_buffer_get_base(buffer));
  const uintptr_t first = (base + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t end = (base + ggml_backend_buffer_get_size(buffer)) / kLargePage * kLargePage;
  // A wish: without it everything works as well.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

std::vector<ggml_backend_buffer_type_t> extra_buffer_types(ggml_backend_dev_t device) {
  std::vector<ggml_backend_buffer_type_t> types;
  const auto get = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  if (!get) return types;
  for (ggml_backend_buffer_type_t* type = get(device); type && *type; ++type) types.push_back(*type);
  return types;
}

bool same_shape(const TensorInfo& info, const Shape& wanted) {
  for (std::size_t i = 0; i < info.ne.size(); ++i)
    if (info.ne[i] != (i < wanted.size() ? wanted[i] : 1)) return false;
  return true;
}

std::string shape_text(const TensorInfo& info) {
  return fmt::format("[{}]", fmt::join(info.ne.begin(), info.ne.begin() + std::max(1, info.n_dims), ", "));
}

}  // namespace

struct WeightSet::Slot {
  Slot(const TensorInfo* tensor_info, Tensor made, Use how, ggml_backend_buffer_type_t type, bool to_f32)
      : info(tensor_info), tensor(made), use(how), buffer_type(type), convert(to_f32) {}

  const TensorInfo* info;
  Tensor tensor;
  Use use;
  ggml_backend_buffer_type_t buffer_type;
  bool convert;  // to F32
  bool in_place = false;
  std::optional<PackedMatrix> packed = {};

  uint64_t size() const { return packed ? packed->size() : ggml_backend_buft_get_alloc_size(buffer_type, tensor); }
  uint64_t alignment() const {
    const uint64_t alignment = ggml_backend_buft_get_alignment(buffer_type);
    return packed ? std::max<uint64_t>(alignment, kPackedAlignment) : alignment;
  }
};

WeightSet::WeightSet(std::shared_ptr<WeightSource> source, ggml_backend_dev_t device, bool repack,
                     const KernelTable* kernels)
    : source_(std::move(source)),
      device_(device),
      cpu_(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)),
      kernels_(repack && device_ == cpu_ ? kernels : nullptr) {
  for (ggml_backend_dev_t dev : {device, cpu_}) {
    if (repack)
      for (ggml_backend_buffer_type_t type : extra_buffer_types(dev)) preferred_.push_back({type, dev});
    preferred_.push_back({ggml_backend_dev_buffer_type(dev), dev});
    if (device == cpu_) break;
  }
}

WeightSet::~WeightSet() {
  for (ggml_backend_buffer_t buffer : buffers_) ggml_backend_buffer_free(buffer);
  for (ggml_context* context : contexts_) ggml_free(context);
}

void WeightSet::fail(Error error) {
  if (status_.ok()) status_ = std::move(error);
}

Result<void> WeightSet::status() const {
  return status_;
}

Tensor WeightSet::new_tensor(ggml_type type, const TensorInfo& info) {
  if (slots_.size() % kTensorsPerContext == 0) {
    ggml_init_params params{};
    params.mem_size = ggml_tensor_overhead() * kTensorsPerContext;
    params.no_alloc = true;
    contexts_.push_back(ggml_init(params));
  }
  Tensor tensor = ggml_new_tensor(contexts_.back(), type, std::max(1, info.n_dims), info.ne.data());
  ggml_set_name(tensor, info.name.c_str());
  return tensor;
}

Tensor WeightSet::declare(std::string_view name, const Shape& shape, Use use, bool optional) {
  const TensorInfo* info = source_->find(name, shape, optional);
  if (!info) {
    if (!optional)
      fail(Error(ErrorCode::kBadModel, fmt::format("tensor {} [{}] is missing", name, fmt::join(shape, ", ")),
                 std::string(name)));
    return nullptr;
  }
  if (!same_shape(*info, shape)) {
    fail(Error(ErrorCode::kBadModel,
               fmt::format("tensor {} has shape {}, expected [{}]", name, shape_text(*info), fmt::join(shape, ", ")),
               std::string(name)));
    return nullptr;
  }
  const bool convert = use == Use::kElement && info->type != GGML_TYPE_F32;
  const ggml_type_traits* traits = ggml_get_type_traits(info->type);
  if ((convert && !traits->to_float) || (info->type >= GGML_TYPE_I8 && info->type <= GGML_TYPE_F64)) {
    fail(Error(ErrorCode::kBadModel,
               fmt::format("tensor {} has type {}, which is no weight type", name, ggml_type_name(info->type)),
               std::string(name)));
    return nullptr;
  }
  for (const auto& slot : slots_)
    if (slot->info == info && (slot->use == use || slot->use == Use::kElement)) return slot->tensor;
  // Rows are looked up in a packed matrix as well, so that a tied head and its table are one.
  if (use == Use::kRows || use == Use::kProduct)
    for (const auto& slot : slots_)
      if (slot->info == info && (use == Use::kRows ? slot->packed.has_value() : slot->use == Use::kRows && pack(*slot)))
        return slot->tensor;

  Tensor tensor = new_tensor(convert ? GGML_TYPE_F32 : info->type, *info);
  ggml_backend_buffer_type_t type = choose_buffer_type(tensor, use);
  if (!type) {
    fail(Error(
        ErrorCode::kUnsupported,
        fmt::format("tensor {} has type {}, which cannot be computed with here", name, ggml_type_name(info->type)),
        std::string(name)));
    return nullptr;
  }
  auto slot = std::make_unique<Slot>(info, tensor, use, type, convert);
  if (use != Use::kProduct || !pack(*slot)) {
    // A tied head shares the table's memory unless products have a layout of their own.
    for (const auto& known : slots_)
      if (known->info == info && known->buffer_type == type && !known->packed) return known->tensor;
  }
  slots_.push_back(std::move(slot));
  return tensor;
}

bool WeightSet::pack(Slot& slot) const {
  if (!kernels_ || slot.convert) return false;
  const auto& ne = slot.info->ne;
  slot.packed = PackedMatrix::describe(*kernels_, slot.info->type, ne[0], ne[1], ne[2]);
  if (!slot.packed) return false;
  slot.buffer_type = ggml_backend_dev_buffer_type(cpu_);
  set_packed(slot.tensor, &*slot.packed);
  return true;
}

bool WeightSet::all_packed() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) {
    return slot->packed || (slot->use != Use::kProduct && slot->use != Use::kHeads);
  });
}

std::string WeightSet::kernels() const {
  std::map<std::string, std::set<std::string>> types;
  for (const auto& slot : slots_)
    if (slot->packed || slot->use == Use::kProduct || slot->use == Use::kHeads)
      types[slot->packed ? slot->packed->kernels->name : "ggml"].insert(ggml_type_name(slot->info->type));
  std::string text;
  for (const auto& [name, of] : types)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, fmt::join(of, ", "));
  return text;
}

bool WeightSet::runs_in(const Place& place, Tensor tensor, Use use) {
  // ggml's CPU code claims every type, also those that only ever hold activations.
  if (ggml_backend_dev_type(place.device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
    const bool product = use == Use::kProduct || use == Use::kHeads;
    if (product && !ggml_get_type_traits_cpu(tensor->type)->vec_dot) return false;
    if (use == Use::kRows && tensor->type != GGML_TYPE_F32 && !ggml_get_type_traits(tensor->type)->to_float)
      return false;
  }
  // ggml decides by the buffer that the weight is in: an empty buffer of the type stands in for it.
  ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(place.type, 0);
  if (!buffer) return false;
  ggml_init_params params{};
  params.mem_size = ggml_tensor_overhead() * 8;
  params.no_alloc = true;
  ggml_context* context = ggml_init(params);
  Tensor weight = ggml_dup_tensor(context, tensor);
  weight->buffer = buffer;
  Tensor op = nullptr;
  if (use == Use::kElement) {
    op = ggml_mul(
        context,
        ggml_new_tensor_4d(context, GGML_TYPE_F32, tensor->ne[0], tensor->ne[1] * 32, tensor->ne[2], tensor->ne[3]),
        weight);
  } else if (use == Use::kRows) {
    op = ggml_get_rows(context, weight, ggml_new_tensor_1d(context, GGML_TYPE_I32, 32));
  } else if (use == Use::kHeads) {
    op = ggml_mul_mat(context, weight, ggml_new_tensor_3d(context, GGML_TYPE_F32, tensor->ne[0], 32, tensor->ne[2]));
  } else if (tensor->ne[2] > 1) {
    op = ggml_mul_mat_id(context, weight, ggml_new_tensor_3d(context, GGML_TYPE_F32, tensor->ne[0], 1, 32),
                         ggml_new_tensor_2d(context, GGML_TYPE_I32, 1, 32));
  } else {
    op = ggml_mul_mat(context, weight, ggml_new_tensor_2d(context, GGML_TYPE_F32, tensor->ne[0], 32));
  }
  const bool supported = ggml_backend_dev_supports_op(place.device, op);
  ggml_free(context);
  ggml_backend_buffer_free(buffer);
  return supported;
}

ggml_backend_buffer_type_t WeightSet::choose_buffer_type(Tensor tensor, Use use) {
  if (use == Use::kProduct) {
    for (const Place& place : preferred_)
      if (runs_in(place, tensor, use)) return place.type;
  } else if (const Place own{ggml_backend_dev_buffer_type(device_), device_}; runs_in(own, tensor, use)) {
    return own.type;
  }
  const Place host{ggml_backend_dev_buffer_type(cpu_), cpu_};
  return runs_in(host, tensor, use) ? host.type : nullptr;
}

bool WeightSet::stays_mapped(const Slot& slot) const {
  if (slot.packed || slot.convert || slot.buffer_type != ggml_backend_dev_buffer_type(cpu_)) return false;
  const auto data = source_->mapped(*slot.info);
  return !data.empty() && reinterpret_cast<uintptr_t>(data.data()) % kHostAlignment == 0;
}

uint64_t WeightSet::device_bytes() const {
  uint64_t total = 0;
  for (const auto& slot : slots_)
    if (!stays_mapped(*slot)) total += slot->size();
  return total;
}

uint64_t WeightSet::weight_bytes() const {
  uint64_t total = 0;
  for (const auto& slot : slots_) total += slot->packed ? slot->packed->size() : ggml_nbytes(slot->tensor);
  return total;
}

Result<void> WeightSet::map_in_place() {
  for (auto& slot : slots_) {
    if (!stays_mapped(*slot)) continue;
    // The mapping is read only; ggml's interface has no const.
    void* data = const_cast<std::byte*>(source_->mapped(*slot->info).data());
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(data, ggml_nbytes(slot->tensor));
    if (!buffer) return Error(ErrorCode::kOutOfMemory, "cannot describe the mapped weights to ggml");
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    buffers_.push_back(buffer);
    if (ggml_backend_tensor_alloc(buffer, slot->tensor, data) != GGML_STATUS_SUCCESS)
      return Error(ErrorCode::kInternal, "ggml refused a mapped tensor", slot->info->name);
    slot->in_place = true;
  }
  return {};
}

Result<void> WeightSet::allocate_buffers() {
  std::map<ggml_backend_buffer_type_t, std::vector<Slot*>> by_type;
  for (auto& slot : slots_)
    if (!slot->in_place) by_type[slot->buffer_type].push_back(slot.get());
  for (auto& [buffer_type, slots] : by_type) {
    const ggml_backend_buffer_type_t type = buffer_type;
    uint64_t alignment = 1;
    for (const Slot* slot : slots) alignment = std::max(alignment, slot->alignment());
    const auto padded = [&](const Slot* slot) { return (slot->size() + alignment - 1) / alignment * alignment; };
    for (std::size_t first = 0; first < slots.size();) {
      uint64_t size = padded(slots[first]);
      std::size_t last = first + 1;
      while (last < slots.size() && size + padded(slots[last]) <= kBufferBytes) size += padded(slots[last++]);
      ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, size + alignment);
      if (!buffer)
        return Error(ErrorCode::kOutOfMemory,
                     fmt::format("cannot get {:.0f} MiB for weights in {}", static_cast<double>(size) / (1 << 20),
                                 ggml_backend_buft_name(type)));
      ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
      buffers_.push_back(buffer);
      prefer_large_pages(buffer);
      auto address = reinterpret_cast<uintptr_t>(ggml_backend_buffer_get_base(buffer));
      address = (address + alignment - 1) / alignment * alignment;
      for (; first < last; ++first) {
        Slot& slot = *slots[first];
        if (slot.packed) {
          // Its size is not the one that ggml knows for the type.
          slot.packed->data = reinterpret_cast<std::byte*>(address);
          slot.tensor->buffer = buffer;
          slot.tensor->data = reinterpret_cast<void*>(address);
        } else if (ggml_backend_tensor_alloc(buffer, slot.tensor, reinterpret_cast<void*>(address)) !=
                   GGML_STATUS_SUCCESS) {
          return Error(ErrorCode::kOutOfMemory, "ggml refused a tensor", slot.info->name);
        }
        address += padded(slots[first]);
      }
    }
  }
  return {};
}

Result<void> WeightSet::load(const std::function<bool(float)>& progress) {
  TRY(status_);
  TRY(map_in_place());
  TRY(allocate_buffers());
  std::vector<WeightToLoad> weights;
  for (const auto& slot : slots_)
    if (!slot->in_place)
      weights.push_back({slot->info, slot->tensor, slot->packed ? &*slot->packed : nullptr, slot->convert});
  // Only the CPU's buffers may be filled from several threads.
  return load_weights(*source_, weights, device_ == cpu_ ? physical_cores() : 1, progress);
}

void WeightSet::place_without_data() {
  std::map<ggml_backend_buffer_type_t, ggml_backend_buffer_t> stand_ins;
  for (auto& slot : slots_) {
    ggml_backend_buffer_t& buffer = stand_ins[slot->buffer_type];
    if (!buffer) buffers_.push_back(buffer = ggml_backend_buft_alloc_buffer(slot->buffer_type, 0));
    slot->tensor->buffer = buffer;
    slot->tensor->data = reinterpret_cast<void*>(kHostAlignment);
  }
}

}  // namespace hocket
