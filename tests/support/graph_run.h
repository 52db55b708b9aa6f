// support/graph_run.h: runs a graph in each of the ways that an executor has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "compute/device.h"
#include "compute/executor.h"
#include "compute/graph.h"

namespace hocket::test {

inline std::vector<float> run_once(Graph& graph, Tensor out, int n_threads, bool with_crew,
                                   const std::function<void()>& fill, int n_runs) {
  auto executor = std::move(*Executor::create(*find_device("CPU"), n_threads, 256));
  EXPECT_TRUE(executor->allocate(graph).ok());
  EXPECT_EQ(executor->with_crew(), with_crew);
  std::vector<float> values(static_cast<std::size_t>(ggml_nelements(out)));
  for (int i = 0; i < n_runs; ++i) {
    fill();
    EXPECT_TRUE(executor->run(graph, CancelToken()).ok());
    ggml_backend_tensor_get(out, values.data(), 0, ggml_nbytes(out));
  }
  return values;
}

// With the crew and, beside more work than it is for, with ggml's threads.
inline std::vector<float> run(Graph& graph, Tensor out, int n_threads, const std::function<void()>& fill,
                              int n_runs = 1) {
  graph.output(out, "out");
  std::vector<float> values = run_once(graph, out, n_threads, n_threads > 1, fill, n_runs);
  Tensor much = graph.input(GGML_TYPE_F32, {1 << 10, 5 << 10}, "much");
  Tensor more = ggml_neg(graph.context(), much);
  graph.output(more, "more");
  graph.compute(more);
  // The first executor has taken the memory with it.
  for (Tensor t = ggml_get_first_tensor(graph.context()); t; t = ggml_get_next_tensor(graph.context(), t)) {
    t->data = nullptr;
    t->buffer = nullptr;
  }
  EXPECT_EQ(run_once(graph, out, n_threads, false, fill, n_runs), values);
  return values;
}

}  // namespace hocket::test
