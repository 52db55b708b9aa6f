// tests/support/block_bench.h: runs one block of a model, with synthetic weights, on given rows.
#pragma once

#include <gtest/gtest.h>

#include <numeric>

#include "compute/device.h"
#include "compute/executor.h"
#include "lm/step_inputs.h"
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
  WeightSet weights{source, device, true, nullptr};
  std::unique_ptr<Executor> executor = std::move(*Executor::create(device, 2, 1024));

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

inline std::vector<float> input(std::size_t n_embd, std::size_t n_tokens, uint32_t seed = 5) {
  std::vector<float> x(n_embd * n_tokens);
  uint32_t state = seed;
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

// Feeds sequences to a block with one layer's memory, in steps: steps[i][s] tokens of sequence s in step i, from x[s]
// [n_embd, …] on. → of each sequence all outputs, one after another.
template <class Build>
std::vector<std::vector<float>> run_steps(Bench& bench, const LayerMemory& layer,
                                          const std::vector<std::vector<float>>& x, std::size_t n_embd, bool flash,
                                          const std::vector<std::vector<std::size_t>>& steps, Build build) {
  const ModelMemoryOptions options{{256, x.size(), 256, CacheType::kF32, CacheType::kF32}, {x.size(), 1, 0}};
  auto memory = std::move(*ModelMemory::create({layer}, options, bench.device));
  std::vector<std::vector<float>> out(x.size());
  for (const std::vector<std::size_t>& step : steps) {
    std::vector<SeqId> seqs;
    std::vector<float> rows;
    for (std::size_t s = 0; s < step.size(); ++s) {
      const std::size_t first = memory->length(static_cast<SeqId>(s)) * n_embd;
      seqs.insert(seqs.end(), step[s], static_cast<SeqId>(s));
      rows.insert(rows.end(), x[s].begin() + static_cast<std::ptrdiff_t>(first),
                  x[s].begin() + static_cast<std::ptrdiff_t>(first + step[s] * n_embd));
    }
    const StepPlacement placement = *memory->place(seqs);
    StepGraph g(
        step_shape(placement, seqs.size(), seqs.size(), StepOutput::kLogits), *memory,
        {.flash_attention = flash, .max_nodes = 1024, .n_ctx = 256, .n_activation = static_cast<int64_t>(n_embd)});
    g.set_result(build(g, g.activations()));
    EXPECT_TRUE(bench.executor->allocate(g.graph()).ok());
    const std::vector<int32_t> tokens(seqs.size(), 0);
    std::vector<uint32_t> every(seqs.size());
    std::iota(every.begin(), every.end(), 0u);
    fill_inputs(g, *memory, placement, {tokens, rows, every});
    EXPECT_TRUE(bench.executor->run(g.graph(), CancelToken()).ok());
    memory->commit(placement);
    std::vector<float> result(static_cast<std::size_t>(ggml_nelements(g.result())));
    ggml_backend_tensor_get(g.result(), result.data(), 0, result.size() * sizeof(float));
    const std::size_t width = result.size() / seqs.size();
    for (std::size_t i = 0; i < seqs.size(); ++i)
      out[static_cast<std::size_t>(seqs[i])].insert(out[static_cast<std::size_t>(seqs[i])].end(),
                                                    result.begin() + static_cast<std::ptrdiff_t>(i * width),
                                                    result.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  }
  return out;
}

// One sequence in one step; the result's bytes as floats.
template <class Build>
std::vector<float> run(Bench& bench, const KvLayerSpec& spec, const std::vector<float>& x, std::size_t n_embd,
                       bool flash, Build build) {
  return run_steps(bench, {.kv = spec}, {x}, n_embd, flash, {{x.size() / n_embd}}, build)[0];
}

}  // namespace hocket::test
