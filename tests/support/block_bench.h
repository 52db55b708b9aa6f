// tests/support/block_bench.h: runs one block of a model, with synthetic weights, on given rows.
#pragma once

#include <gtest/gtest.h>

#include "compute/device.h"
#include "compute/executor.h"
#include "lm/step_graph.h"
#include "support/reference/transformer.h"
#include "weights/weight_set.h"

namespace hocket::test {

// Bounds of the NMSE against a double-precision twin: the order of F32 sums over at most a few hundred terms; ggml's
// GELU in a table of half precision; operands rounded to half precision.
constexpr double kExact = 1e-11, kGeluTable = 1e-6, kHalf = 1e-5;

struct Bench {
  // Every optional tensor exists, except those whose names contain one of `absent`.
  explicit Bench(std::vector<std::string> absent = {".scale"}) : source(std::make_shared<Source>(std::move(absent))) {}

  struct Source : SyntheticWeights {
    explicit Source(std::vector<std::string> names) : SyntheticWeights(11, /*with_optional=*/true), absent(names) {}
    const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override {
      for (const std::string& part : absent)
        if (name.find(part) != std::string_view::npos) return nullptr;
      return SyntheticWeights::find(name, wanted, optional);
    }
    std::vector<std::string> absent;
  };
  std::shared_ptr<Source> source;
  ggml_backend_dev_t device = *find_device("");
  WeightSet weights{source, device, true};
  std::unique_ptr<Executor> executor = std::move(*Executor::create(device, 2, 512));

  reference::Row weight(const std::string& name) const {
    for (const TensorInfo& tensor : source->made()) {
      if (tensor.name != name) continue;
      std::vector<float> values(tensor.n_bytes / sizeof(float));
      EXPECT_TRUE(source->read(tensor, std::as_writable_bytes(std::span(values))).ok());
      return {values.begin(), values.end()};
    }
    ADD_FAILURE() << "no weight " << name;
    return {};
  }
};

inline std::vector<float> input(std::size_t n_embd, std::size_t n_tokens) {
  std::vector<float> x(n_embd * n_tokens);
  uint32_t state = 5;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
  }
  return x;
}

inline reference::Rows rows_of(const std::vector<float>& x, std::size_t n_embd) {
  reference::Rows rows;
  for (std::size_t at = 0; at < x.size(); at += n_embd)
    rows.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(at),
                      x.begin() + static_cast<std::ptrdiff_t>(at + n_embd));
  return rows;
}

inline reference::Row flat(const reference::Rows& rows) {
  reference::Row all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

// Runs `build` on x [n_embd, n_tokens] in a step graph over one layer of the given memory; the result's bytes as
// floats.
template <class Build>
std::vector<float> run(Bench& bench, const KvLayerSpec& spec, const std::vector<float>& x, std::size_t n_embd,
                       bool flash, Build build) {
  const std::size_t n_tokens = x.size() / n_embd;
  KvCacheOptions options{256, 1, 256, CacheType::kF32, CacheType::kF32};
  auto cache = std::move(*KvCache::create({spec}, options, bench.device));
  const Placement placement = *cache->place(std::vector<SeqId>(n_tokens, 0));
  StepShape shape;
  shape.n_tokens = shape.n_outputs = n_tokens;
  shape.n_kv = {placement.pools[0].n_kv};
  StepGraph g(shape, *cache, flash, 512);
  Tensor in = g.graph().input(GGML_TYPE_F32, {static_cast<int64_t>(n_embd), static_cast<int64_t>(n_tokens)}, "x");
  g.set_result(build(g, in));
  EXPECT_TRUE(bench.executor->allocate(g.graph()).ok());
  ggml_backend_tensor_set(in, x.data(), 0, ggml_nbytes(in));
  std::vector<int32_t> positions;
  std::vector<int64_t> cells;
  std::vector<uint32_t> every;
  for (std::size_t i = 0; i < n_tokens; ++i) {
    positions.push_back(placement.tokens[i].position);
    cells.push_back(placement.pools[0].cells[i]);
    every.push_back(static_cast<uint32_t>(i));
  }
  std::vector<ggml_fp16_t> mask(n_tokens * shape.n_kv[0]);
  cache->fill_mask(placement, 0, every, mask);
  const auto set = [](Tensor t, const void* data) {
    if (t->buffer) ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
  };
  set(g.positions(), positions.data());
  set(g.cells(0), cells.data());
  set(g.mask(0), mask.data());
  EXPECT_TRUE(bench.executor->run(g.graph(), CancelToken()).ok());
  std::vector<float> out(static_cast<std::size_t>(ggml_nelements(g.result())));
  ggml_backend_tensor_get(g.result(), out.data(), 0, out.size() * sizeof(float));
  return out;
}

}  // namespace hocket::test
