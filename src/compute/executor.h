// compute/executor.h: memory and threads that run graphs.
//
// The chosen device runs what it supports, the CPU the rest. One graph is allocated at a time; running it again with
// new inputs costs nothing but the run.
//
// On the CPU a graph of small operations beside our own (packed_products.h, cell_attention.h) runs on one thread, with
// the crew's help for ours; any other runs on all of ggml's threads. The results are the same.
//
// Owns     back ends, compute buffers, its share of a thread pool.
// Threads  one user at a time.
// Errors   kOutOfMemory from reserve() and allocate(); kCancelled and kInternal from run().
// Cost     allocate(): proportional to the nodes; grows the buffers only when a graph needs more than was reserved.
#pragma once

#include <ggml-backend.h>

#include <cstddef>
#include <memory>

#include "base/cancel.h"
#include "base/result.h"
#include "compute/graph.h"
#include "compute/thread_pool.h"

namespace hocket {

class Executor {
 public:
  // n_threads ≥ 1. max_nodes bounds every graph given to this executor.
  static Result<std::unique_ptr<Executor>> create(ggml_backend_dev_t device, int n_threads, std::size_t max_nodes);
  static Result<std::unique_ptr<Executor>> create(ggml_backend_dev_t device, std::shared_ptr<ThreadPool> threads,
                                                  std::size_t max_nodes);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Bytes that reserve() would allocate for this graph; nothing is allocated.
  std::size_t measure(Graph& graph);
  // Makes room for graphs up to this size.
  Result<void> reserve(Graph& graph);
  // Gives the graph its memory; the one allocated before loses it.
  Result<void> allocate(Graph& graph);
  // Runs the allocated graph.
  Result<void> run(Graph& graph, const CancelToken& cancel);

  std::size_t compute_bytes() const;  // held now
  int n_threads() const { return threads_->n_threads(); }
  // Whether the allocated graph runs on one thread with the crew's help.
  bool with_crew() const { return with_crew_; }

 private:
  Executor() = default;
  void use(bool crew);

  ggml_backend_t device_ = nullptr;  // nullptr when the device is the CPU
  ggml_backend_t cpu_ = nullptr;
  std::shared_ptr<ThreadPool> threads_;
  ggml_backend_sched_t sched_ = nullptr;
  bool with_crew_ = false;               // the allocated graph
  const CancelToken* cancel_ = nullptr;  // of the run in progress
};

}  // namespace hocket
