#include "compute/executor.h"

#include <fmt/format.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace hocket {
namespace {

// About a millisecond of one core.
constexpr int64_t kSmallWork = 4 << 20;

// What ggml's operations of a graph have to do, about: numbers written, and products at an eighth.
int64_t work_of_ggml(ggml_cgraph* graph) {
  int64_t work = 0;
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    switch (node->op) {
      case GGML_OP_NONE:
      case GGML_OP_VIEW:
      case GGML_OP_RESHAPE:
      case GGML_OP_PERMUTE:
      case GGML_OP_TRANSPOSE:
      case GGML_OP_CUSTOM:
        break;
      case GGML_OP_SET_ROWS:  // its result is the whole table
        work += ggml_nelements(node->src[0]);
        break;
      case GGML_OP_MUL_MAT:
      case GGML_OP_MUL_MAT_ID:
      case GGML_OP_OUT_PROD:
        work += ggml_nelements(node) * node->src[0]->ne[0] / 8;
        break;
      case GGML_OP_FLASH_ATTN_EXT:
        work += ggml_nelements(node) * node->src[1]->ne[1] / 4;
        break;
      default: {
        int64_t largest = ggml_nelements(node);
        for (const ggml_tensor* source : node->src)
          if (source && node->op != GGML_OP_GET_ROWS) largest = std::max(largest, ggml_nelements(source));
        work += largest;
      }
    }
  }
  return work;
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(ggml_backend_dev_t device, int n_threads, std::size_t max_nodes) {
  TRY_ASSIGN(std::shared_ptr<ThreadPool> threads, ThreadPool::create(n_threads));
  return create(device, std::move(threads), max_nodes);
}

Result<std::unique_ptr<Executor>> Executor::create(ggml_backend_dev_t device, std::shared_ptr<ThreadPool> threads,
                                                   std::size_t max_nodes) {
  std::unique_ptr<Executor> executor(new Executor());
  executor->threads_ = std::move(threads);

  executor->cpu_ = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  if (!executor->cpu_) return Error(ErrorCode::kInternal, "ggml has no CPU back end");
  executor->use(false);
  ggml_backend_cpu_set_abort_callback(
      executor->cpu_,
      [](void* self) {
        const CancelToken* cancel = static_cast<Executor*>(self)->cancel_;
        return cancel != nullptr && cancel->cancelled();
      },
      executor.get());

  std::vector<ggml_backend_t> backends;
  if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) {
    executor->device_ = ggml_backend_dev_init(device, nullptr);
    if (!executor->device_)
      return Error(ErrorCode::kIo, fmt::format("cannot open device {}", ggml_backend_dev_name(device)), "device");
    backends.push_back(executor->device_);
  }
  backends.push_back(executor->cpu_);
  executor->sched_ = ggml_backend_sched_new(backends.data(), nullptr, static_cast<int>(backends.size()), max_nodes,
                                            /*parallel=*/false, /*op_offload=*/false);
  if (!executor->sched_) return Error(ErrorCode::kOutOfMemory, "cannot create the graph scheduler");
  return executor;
}

void Executor::use(bool crew) {
  ggml_backend_cpu_set_threadpool(cpu_, crew ? threads_->caller() : threads_->all());
  ggml_backend_cpu_set_n_threads(cpu_, crew ? 1 : n_threads());
}

Executor::~Executor() {
  if (sched_) ggml_backend_sched_free(sched_);
  if (device_) ggml_backend_free(device_);
  if (cpu_) ggml_backend_free(cpu_);
}

std::size_t Executor::measure(Graph& graph) {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(ggml_backend_sched_get_n_backends(sched_)), 0);
  ggml_backend_sched_reset(sched_);
  ggml_backend_sched_reserve_size(sched_, graph.nodes(), sizes.data());
  ggml_backend_sched_reset(sched_);
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  return total;
}

Result<void> Executor::reserve(Graph& graph) {
  ggml_backend_sched_reset(sched_);
  if (!ggml_backend_sched_reserve(sched_, graph.nodes()))
    return Error(ErrorCode::kOutOfMemory, "not enough memory for the compute buffers");
  return {};
}

Result<void> Executor::allocate(Graph& graph) {
  // ggml takes the plan of the graph before for this one when both have as many nodes and leaves, whatever these are.
  TRY(reserve(graph));
  ggml_backend_sched_reset(sched_);
  if (!ggml_backend_sched_alloc_graph(sched_, graph.nodes()))
    return Error(ErrorCode::kOutOfMemory, "not enough memory for the compute buffers");
  with_crew_ = !device_ && n_threads() > 1 && work_of_ggml(graph.nodes()) <= kSmallWork;
  return {};
}

Result<void> Executor::run(Graph& graph, const CancelToken& cancel) {
  std::optional<Crew::Helped> helped;
  if (with_crew_) helped.emplace(threads_->crew());
  use(with_crew_);
  cancel_ = &cancel;
  const ggml_status status = ggml_backend_sched_graph_compute(sched_, graph.nodes());
  cancel_ = nullptr;
  switch (status) {
    case GGML_STATUS_SUCCESS:
      return {};
    case GGML_STATUS_ABORTED:
      return Error(ErrorCode::kCancelled, "cancelled");
    case GGML_STATUS_ALLOC_FAILED:
      return Error(ErrorCode::kOutOfMemory, "not enough memory to run the graph");
    default:
      return Error(ErrorCode::kInternal, fmt::format("the graph failed with status {}", static_cast<int>(status)));
  }
}

std::size_t Executor::compute_bytes() const {
  std::size_t total = 0;
  for (int i = 0; i < ggml_backend_sched_get_n_backends(sched_); ++i)
    total += ggml_backend_sched_get_buffer_size(sched_, ggml_backend_sched_get_backend(sched_, i));
  return total;
}

}  // namespace hocket
