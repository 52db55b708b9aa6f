#include "lm/step_runner.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"

namespace hocket {

KvCacheOptions kv_cache_options(const RunnerOptions& options) {
  return {options.n_ctx, options.n_seqs, options.n_batch, options.cache_k, options.cache_v};
}

bool uses_flash_attention(const RunnerOptions& options) {
  if (options.flash_attention != FlashAttention::kAuto) return options.flash_attention == FlashAttention::kOn;
  return options.cache_k != CacheType::kF32 || options.cache_v != CacheType::kF32;
}

StepShape largest_step(const KvCache& cache, const RunnerOptions& options) {
  StepShape shape;
  shape.n_tokens = options.n_batch;
  shape.n_outputs = std::min(options.n_batch, options.n_seqs);
  for (std::size_t p = 0; p < cache.n_pools(); ++p) shape.n_kv.push_back(cache.max_n_kv(p));
  return shape;
}

Result<std::unique_ptr<LmRunner>> LmRunner::create(const LanguageModel& model, const RunnerOptions& options) {
  const auto* loaded = dynamic_cast<const LoadedModel*>(&model);
  CHECK(loaded != nullptr);
  TRY_ASSIGN(auto runner, StepRunner::create(*loaded, options));
  return std::unique_ptr<LmRunner>(std::move(runner));
}

Result<std::unique_ptr<StepRunner>> StepRunner::create(const LoadedModel& model, const RunnerOptions& asked) {
  RunnerOptions options = asked;
  if (options.n_ctx == 0 || options.n_ctx > (1u << 30))
    return Error(ErrorCode::kInvalid, fmt::format("a context of {} tokens is not possible", options.n_ctx), "ctx-size");
  if (options.n_seqs == 0 || options.n_seqs > kMaxSeqs)
    return Error(ErrorCode::kInvalid, fmt::format("1 to {} sequences are possible, not {}", kMaxSeqs, options.n_seqs),
                 "parallel");
  if (options.n_batch == 0 || options.n_batch > 16384)
    return Error(ErrorCode::kInvalid, fmt::format("a batch of {} tokens is not possible", options.n_batch),
                 "batch-size");
  if (options.n_threads < 0 || options.n_threads > GGML_MAX_N_THREADS)
    return Error(ErrorCode::kInvalid, fmt::format("{} threads are not possible", options.n_threads), "threads");
  options.n_batch = std::min(options.n_batch, options.n_ctx);
  if (options.threads) options.n_threads = options.threads->n_threads();
  if (options.n_threads == 0) options.n_threads = physical_cores();
  if (!uses_flash_attention(options) && ggml_is_quantized(to_ggml(options.cache_v)))
    return Error(ErrorCode::kUnsupported, "a quantised V cache needs flash attention", "cache-type-v");

  if (!options.threads) {
    TRY_ASSIGN(options.threads, ThreadPool::create(options.n_threads));
  }
  std::unique_ptr<StepRunner> runner(new StepRunner(model, options));
  TRY_ASSIGN(runner->executor_, Executor::create(model.device(), options.threads, model.max_nodes()));
  TRY_ASSIGN(runner->cache_, KvCache::create(model.memory_layout(), kv_cache_options(options), model.device()));
  // Taken once; only a step that wants the logits of more rows than there are sequences needs more.
  StepGraph g(largest_step(*runner->cache_, options), *runner->cache_, uses_flash_attention(options),
              model.max_nodes());
  model.build(g);
  TRY(runner->executor_->reserve(g.graph()));
  return runner;
}

Result<void> StepRunner::check(std::span<const BatchToken> batch) const {
  if (batch.empty() || batch.size() > options_.n_batch)
    return Error(ErrorCode::kInvalid,
                 fmt::format("a step takes 1 to {} tokens, not {}", options_.n_batch, batch.size()));
  for (const BatchToken& token : batch)
    if (token.id < 0 || static_cast<std::size_t>(token.id) >= model_.n_vocab())
      return Error(ErrorCode::kInvalid,
                   fmt::format("token {} is not in the vocabulary of {}", token.id, model_.n_vocab()));
  return {};
}

Result<void> StepRunner::prepare_graph(const StepShape& shape) {
  if (graph_ && graph_->shape() == shape) return {};
  graph_.reset();
  auto graph = std::make_unique<StepGraph>(shape, *cache_, uses_flash_attention(options_), model_.max_nodes());
  model_.build(*graph);
  TRY(executor_->allocate(graph->graph()));
  graph_ = std::move(graph);
  return {};
}

void StepRunner::fill_inputs(std::span<const BatchToken> batch, const Placement& placement,
                             std::span<const uint32_t> rows) {
  const StepGraph& g = *graph_;
  // Tensors that the architecture does not use have no memory.
  const auto set = [](Tensor tensor, const void* data) {
    if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
  };
  std::vector<int32_t> tokens, positions, output_positions;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    tokens.push_back(batch[i].id);
    positions.push_back(placement.tokens[i].position);
  }
  for (const uint32_t row : rows) output_positions.push_back(positions[row]);
  set(g.tokens(), tokens.data());
  set(g.positions(), positions.data());
  set(g.output_rows(), rows.data());
  set(g.output_positions(), output_positions.data());

  std::vector<uint32_t> every(batch.size());
  std::iota(every.begin(), every.end(), 0u);
  for (std::size_t p = 0; p < cache_->n_pools(); ++p) {
    const std::vector<int64_t> cells(placement.pools[p].cells.begin(), placement.pools[p].cells.end());
    set(g.cells(p), cells.data());
    const auto fill = [&](Tensor mask, std::span<const uint32_t> queries) {
      if (!mask || !mask->buffer) return;
      mask_.resize(queries.size() * placement.pools[p].n_kv);
      cache_->fill_mask(placement, p, queries, mask_);
      set(mask, mask_.data());
    };
    fill(g.mask(p), every);
    fill(g.output_mask(p), rows);
  }
}

Result<void> StepRunner::step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) {
  TRY(check(batch));
  std::vector<SeqId> seqs;
  std::vector<uint32_t> rows;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    seqs.push_back(batch[i].seq);
    if (batch[i].output) rows.push_back(static_cast<uint32_t>(i));
  }
  const std::size_t n_wanted = rows.size();
  // The graph always has a result; without a wanted row it is one that nobody reads.
  if (rows.empty()) rows.push_back(static_cast<uint32_t>(batch.size() - 1));

  TRY_ASSIGN(const Placement placement, cache_->place(seqs));
  for (const PlacedToken& token : placement.tokens)
    if (static_cast<std::size_t>(token.position) >= options_.n_ctx)
      return Error(ErrorCode::kBusy, fmt::format("the context of {} tokens is full", options_.n_ctx), "ctx-size");
  StepShape shape;
  shape.n_tokens = batch.size();
  shape.n_outputs = rows.size();
  shape.hidden = output == StepOutput::kHidden;
  for (const PoolPlacement& pool : placement.pools) shape.n_kv.push_back(pool.n_kv);
  TRY(prepare_graph(shape));
  fill_inputs(batch, placement, rows);
  TRY(executor_->run(graph_->graph(), cancel));

  cache_->commit(placement);
  n_outputs_ = n_wanted;
  Tensor result = graph_->result();
  row_width_ = static_cast<std::size_t>(result->ne[0]);
  results_.resize(n_outputs_ * row_width_);
  ggml_backend_tensor_get(result, results_.data(), 0, results_.size() * sizeof(float));
  return {};
}

std::span<const float> StepRunner::output(std::size_t i) const {
  CHECK(i < n_outputs_);
  return std::span<const float>(results_).subspan(i * row_width_, row_width_);
}

}  // namespace hocket
