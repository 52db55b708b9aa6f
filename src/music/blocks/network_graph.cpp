#include "music/blocks/network_graph.h"

#include <cmath>
#include <limits>

#include "compute/device.h"
#include "compute/kernels/kernel_table.h"

namespace hocket {
namespace {

std::vector<float> read_floats(Tensor tensor) {
  std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
  ggml_backend_tensor_get(tensor, values.data(), 0, ggml_nbytes(tensor));
  return values;
}

}  // namespace

Result<MusicCompute> MusicCompute::create(std::string_view device, int n_threads) {
  MusicCompute compute;
  TRY_ASSIGN(compute.device, find_device(device));
  compute.kernels = find_kernels("auto");
  TRY_ASSIGN(compute.threads, ThreadPool::create(n_threads > 0 ? n_threads : physical_cores()));
  return compute;
}

const KernelTable* MusicCompute::own_kernels() const {
  return ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU ? kernels : nullptr;
}

Tensor NetworkGraph::floats(std::initializer_list<int64_t> ne, std::vector<float> values) {
  Tensor tensor = graph_.input(GGML_TYPE_F32, ne, "floats");
  CHECK(values.size() == static_cast<std::size_t>(ggml_nelements(tensor)));
  float_inputs_[tensor] = std::move(values);
  return tensor;
}

Tensor NetworkGraph::integers(std::initializer_list<int64_t> ne, std::vector<int32_t> values) {
  Tensor tensor = graph_.input(GGML_TYPE_I32, ne, "integers");
  CHECK(values.size() == static_cast<std::size_t>(ggml_nelements(tensor)));
  integer_inputs_[tensor] = std::move(values);
  return tensor;
}

void NetworkGraph::set(Tensor input, std::vector<float> values) {
  CHECK(values.size() == static_cast<std::size_t>(ggml_nelements(input)));
  float_inputs_.at(input) = std::move(values);
}

Tensor NetworkGraph::mask(MaskKind kind, int64_t window, int64_t n_keys, int64_t n_queries, int64_t shift) {
  const MaskKey key{kind, window, n_keys, n_queries, shift};
  if (const auto found = masks_.find(key); found != masks_.end()) return found->second;
  std::vector<float> values(static_cast<std::size_t>(n_keys * n_queries));
  std::size_t at = 0;
  for (int64_t i = 0; i < n_queries; ++i)
    for (int64_t j = 0; j < n_keys; ++j, ++at) {
      const int64_t ahead = j - (i + shift);
      const bool seen = kind == MaskKind::kBefore ? ahead <= 0 : std::abs(ahead) <= window;
      values[at] = seen ? 0.0f : -std::numeric_limits<float>::infinity();
    }
  return masks_[key] = floats({n_keys, n_queries}, std::move(values));
}

Tensor NetworkGraph::length_mask(const std::vector<int64_t>& lengths, int64_t n_keys, int64_t n_queries) {
  // ggml takes a mask with more rows than there are queries.
  for (const auto& [known, tensor] : length_masks_)
    if (known == lengths && tensor->ne[0] == n_keys && tensor->ne[1] >= n_queries) return tensor;
  const auto n_samples = static_cast<int64_t>(lengths.size());
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(n_keys * n_queries * n_samples));
  for (const int64_t length : lengths)
    for (int64_t i = 0; i < n_queries; ++i)
      for (int64_t j = 0; j < n_keys; ++j)
        values.push_back(j < length ? 0.0f : -std::numeric_limits<float>::infinity());
  Tensor tensor = floats({n_keys, n_queries, 1, n_samples}, std::move(values));
  length_masks_.emplace_back(lengths, tensor);
  return tensor;
}

void NetworkGraph::tap(const std::string& name, Tensor tensor) {
  if (!taps_) return;
  if (!ggml_is_contiguous(tensor)) tensor = ggml_cont(context(), tensor);
  graph_.output(tensor, name.c_str());
  tapped_.emplace_back(name, tensor);
}

Result<std::unique_ptr<NetworkExecutor>> NetworkExecutor::create(const MusicCompute& compute, std::size_t max_nodes) {
  std::unique_ptr<NetworkExecutor> made(new NetworkExecutor);
  TRY_ASSIGN(made->executor_, Executor::create(compute.device, compute.threads, max_nodes));
  made->meter_ = compute.meter;
  return made;
}

Result<void> NetworkExecutor::allocate(NetworkGraph& graph) {
  if (!meter_) return executor_->allocate(graph.graph());
  uint64_t n_bytes = measure(graph);
  for (const auto& [tensor, values] : graph.float_inputs_) n_bytes += ggml_nbytes(tensor);
  for (const auto& [tensor, values] : graph.integer_inputs_) n_bytes += ggml_nbytes(tensor);
  meter_->add_graph(n_bytes);
  return {};
}

Result<std::vector<float>> NetworkExecutor::run(NetworkGraph& graph, Tensor result, const CancelToken& cancel) {
  if (meter_) return std::vector<float>(static_cast<std::size_t>(ggml_nelements(result)));
  // An input that nothing reads has no memory.
  for (const auto& [tensor, values] : graph.float_inputs_)
    if (tensor->buffer) ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
  for (const auto& [tensor, values] : graph.integer_inputs_)
    if (tensor->buffer) ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
  TRY(executor_->run(graph.graph(), cancel));
  for (const auto& [name, tensor] : graph.tapped_) (*graph.taps_)[name] = read_floats(tensor);
  return read_floats(result);
}

Result<std::vector<float>> run_once(const MusicCompute& compute, NetworkGraph& graph, Tensor result,
                                    std::size_t max_nodes, const CancelToken& cancel) {
  TRY_ASSIGN(const auto executor, NetworkExecutor::create(compute, max_nodes));
  TRY(executor->allocate(graph));
  return executor->run(graph, result, cancel);
}

}  // namespace hocket
