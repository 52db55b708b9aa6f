// music/blocks/network_graph.h: the graph of one network, with its inputs as values.
//
// ggml reuses the memory of inputs once they have been read, so a graph that runs again needs them again: each input
// keeps its values here and NetworkExecutor hands over all of them.
//
// Owns     the graph, the values of its inputs.
// Threads  one user at a time.
// Cost     inputs are copied before each run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "compute/convolutions.h"
#include "compute/dense_attention.h"
#include "compute/executor.h"
#include "compute/graph.h"
#include "music/blocks/memory_meter.h"

namespace hocket {

struct KernelTable;

// Where the networks of a pipeline run.
struct MusicCompute {
  ggml_backend_dev_t device = nullptr;
  std::shared_ptr<ThreadPool> threads;
  const KernelTable* kernels = nullptr;  // our own, of products with quantised weights; nullptr: ggml's
  std::shared_ptr<MemoryMeter> meter;    // set: nothing is loaded or run

  // `device` as --device takes it; n_threads 0: the physical cores.
  static Result<MusicCompute> create(std::string_view device = {}, int n_threads = 0);
  // `kernels` where the device is the CPU, else nullptr.
  const KernelTable* own_kernels() const;
  // Loads the weights of a network, or has them measured.
  template <class Weights>
  Result<void> load(Weights& weights, const char* network) const {
    if (!meter) return weights.load();
    TRY(weights.status());
    weights.place_without_data();
    meter->add_weights(network, weights.weight_bytes());
    return {};
  }
};

// Intermediate results by name, for tests and dumps.
using Taps = std::map<std::string, std::vector<float>, std::less<>>;

// What a query may see of the keys.
enum class MaskKind { kBefore, kWindow };  // keys up to its own position; keys at most `window` positions away

class NetworkGraph {
 public:
  // With `taps` every tap() is read back after a run.
  NetworkGraph(const MusicCompute& compute, std::size_t max_nodes, Taps* taps = nullptr)
      : graph_(max_nodes), kernels_(compute.own_kernels()), taps_(taps) {}

  Graph& graph() { return graph_; }
  // Our own code of the device, or nullptr: then operations are ggml's.
  const KernelTable* own_kernels() const { return kernels_; }
  // Operations of our own, which live as long as the graph.
  Convolutions& convolutions() { return convolutions_; }
  DenseAttentions& dense_attentions() { return dense_attentions_; }
  ggml_context* context() const { return graph_.context(); }

  // An F32 or I32 input; the number of values is that of the elements. set() gives it other values.
  Tensor floats(std::initializer_list<int64_t> ne, std::vector<float> values);
  Tensor integers(std::initializer_list<int64_t> ne, std::vector<int32_t> values);
  void set(Tensor input, std::vector<float> values);

  // F32 [n_keys, n_queries]: 0 where seen, −∞ elsewhere; query i has position i + shift, key j has position j.
  Tensor mask(MaskKind kind, int64_t window, int64_t n_keys, int64_t n_queries, int64_t shift);
  // F32 [n_keys, n_queries, 1, n_samples]: sample n sees its first lengths[n] keys.
  Tensor length_mask(const std::vector<int64_t>& lengths, int64_t n_keys, int64_t n_queries);

  void tap(const std::string& name, Tensor tensor);

 private:
  friend class NetworkExecutor;
  using MaskKey = std::tuple<MaskKind, int64_t, int64_t, int64_t, int64_t>;

  Graph graph_;
  const KernelTable* kernels_;
  Convolutions convolutions_;
  DenseAttentions dense_attentions_;
  std::map<Tensor, std::vector<float>> float_inputs_;
  std::map<Tensor, std::vector<int32_t>> integer_inputs_;
  std::map<MaskKey, Tensor> masks_;
  std::vector<std::pair<std::vector<int64_t>, Tensor>> length_masks_;
  std::vector<std::pair<std::string, Tensor>> tapped_;
  Taps* taps_;
};

// Compute buffers for graphs of one network, or with a meter their measure.
class NetworkExecutor {
 public:
  static Result<std::unique_ptr<NetworkExecutor>> create(const MusicCompute& compute, std::size_t max_nodes);

  // Bytes that allocate() would take, without the inputs.
  std::size_t measure(NetworkGraph& graph) { return executor_->measure(graph.graph()); }
  Result<void> allocate(NetworkGraph& graph);
  // Runs the graph that was allocated last, with the present values of its inputs. Gives the elements of `result`,
  // which was made an output.
  Result<std::vector<float>> run(NetworkGraph& graph, Tensor result, const CancelToken& cancel);
  std::size_t compute_bytes() const { return executor_->compute_bytes(); }

 private:
  NetworkExecutor() = default;

  std::unique_ptr<Executor> executor_;
  std::shared_ptr<MemoryMeter> meter_;
};

// For graphs that run once: memory for this run only. Gives the elements of `result`, which was made an output.
Result<std::vector<float>> run_once(const MusicCompute& compute, NetworkGraph& graph, Tensor result,
                                    std::size_t max_nodes, const CancelToken& cancel);

}  // namespace hocket
