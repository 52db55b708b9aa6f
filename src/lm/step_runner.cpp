#include "lm/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "lm/step_inputs.h"

namespace hocket {

namespace {
constexpr std::size_t kMaxRollback = 65;  // a draft of 64 tokens and the token before it
}  // namespace

ModelMemoryOptions memory_options(const RunnerOptions& options) {
  const std::size_t n_cells = options.n_cells == 0 ? options.n_ctx : options.n_cells;
  return {{n_cells, options.n_seqs, options.n_batch, options.cache_k, options.cache_v},
          {options.n_seqs, options.n_rollback, options.n_checkpoints}};
}

bool uses_flash_attention(const RunnerOptions& options) {
  if (options.flash_attention != FlashAttention::kAuto) return options.flash_attention == FlashAttention::kOn;
  return options.cache_k != CacheType::kF32 || options.cache_v != CacheType::kF32;
}

StepShape largest_step(const ModelMemory& memory, const RunnerOptions& options) {
  StepShape shape;
  shape.n_tokens = options.n_batch;
  shape.n_outputs = std::min(options.n_batch, options.n_seqs);
  for (std::size_t p = 0; p < memory.kv().n_pools(); ++p) shape.n_kv.push_back(memory.kv().max_n_kv(p));
  if (memory.recurrent().any())
    shape.lanes.push_back({options.n_batch, 1, memory.recurrent().n_written(options.n_batch)});
  return shape;
}

Result<std::unique_ptr<LmRunner>> LmRunner::create(const LanguageModel& model, const RunnerOptions& options) {
  const auto* loaded = dynamic_cast<const LoadedModel*>(&model);
  CHECK(loaded != nullptr && loaded->trunk() != nullptr);
  TRY_ASSIGN(auto runner, StepRunner::create(*loaded, *loaded->trunk(), options));
  return std::unique_ptr<LmRunner>(std::move(runner));
}

Result<std::unique_ptr<LmRunner>> LmRunner::create_nextn(const LanguageModel& model, const RunnerOptions& options) {
  const auto* loaded = dynamic_cast<const LoadedModel*>(&model);
  if (!loaded || !loaded->nextn())
    return Error(ErrorCode::kUnsupported, "this model has no NextN block to draft with", "mtp");
  TRY_ASSIGN(auto runner, StepRunner::create(*loaded, *loaded->nextn(), options));
  return std::unique_ptr<LmRunner>(std::move(runner));
}

Result<void> LmRunner::step_from(std::span<const float>, std::span<const BatchToken>, StepOutput, const CancelToken&) {
  return Error(ErrorCode::kUnsupported, "this runner starts from tokens, not from activations");
}

std::span<const float> LmRunner::hidden(std::size_t) const {
  return {};
}

Result<std::unique_ptr<StepRunner>> StepRunner::create(const LoadedModel& model, const ModelPart& part,
                                                       const RunnerOptions& asked) {
  RunnerOptions options = asked;
  if (options.n_ctx == 0 || options.n_ctx > (1u << 30))
    return Error(ErrorCode::kInvalid, fmt::format("a context of {} tokens is not possible", options.n_ctx), "ctx-size");
  if (options.n_cells == 0) options.n_cells = options.n_ctx;
  if (options.n_cells < options.n_ctx || options.n_cells > (1u << 30))
    return Error(
        ErrorCode::kInvalid,
        fmt::format("a cache of {} cells is not possible with a context of {}", options.n_cells, options.n_ctx),
        "cache-cells");
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
  if (options.n_rollback == 0 || options.n_rollback > kMaxRollback)
    return Error(ErrorCode::kInvalid,
                 fmt::format("drafts may have up to {} tokens, not {}", kMaxRollback - 1,
                             static_cast<int64_t>(options.n_rollback) - 1),
                 "draft-max");
  const std::vector<LayerMemory> layers = part.memory_layout();
  const bool latent =
      std::any_of(layers.begin(), layers.end(), [](const LayerMemory& layer) { return layer.kv.n_latent > 0; });
  if (!uses_flash_attention(options)) {
    // Values are transposed then, and with latents they are the keys' rows.
    if (ggml_is_quantized(to_ggml(options.cache_v)))
      return Error(ErrorCode::kUnsupported, "a quantised V cache needs flash attention", "cache-type-v");
    if (latent && ggml_is_quantized(to_ggml(options.cache_k)))
      return Error(ErrorCode::kUnsupported, "a quantised cache of latents needs flash attention", "cache-type-k");
  }

  if (!options.threads) {
    TRY_ASSIGN(options.threads, ThreadPool::create(options.n_threads));
  }
  std::unique_ptr<StepRunner> runner(new StepRunner(model, part, options));
  TRY_ASSIGN(runner->memory_, ModelMemory::create(layers, memory_options(options), model.device()));
  const std::size_t n_groups = runner->memory_->recurrent().any() ? options.n_seqs : 1;
  TRY_ASSIGN(runner->executor_, Executor::create(model.device(), options.threads, part.max_nodes(n_groups)));
  // Taken once; only a step that wants the logits of more rows than there are sequences needs more.
  StepGraph g(largest_step(*runner->memory_, options), *runner->memory_,
              part.graph_options(uses_flash_attention(options), options.n_ctx, 1, model.kernels()));
  part.build(g);
  TRY(runner->executor_->reserve(g.graph()));
  // ggml's products choose the order of their sums by the size of a batch.
  runner->rows_independent_ = model.weights().all_packed() && g.works_by_rows();
  return runner;
}

Result<void> StepRunner::check(std::span<const float> activations, std::span<const BatchToken> batch,
                               StepOutput output) const {
  if (batch.empty() || batch.size() > options_.n_batch)
    return Error(ErrorCode::kInvalid,
                 fmt::format("a step takes 1 to {} tokens, not {}", options_.n_batch, batch.size()));
  for (const BatchToken& token : batch) {
    if (token.id < 0 || static_cast<std::size_t>(token.id) >= model_.n_vocab())
      return Error(ErrorCode::kInvalid,
                   fmt::format("token {} is not in the vocabulary of {}", token.id, model_.n_vocab()));
    if (token.seq < 0 || static_cast<std::size_t>(token.seq) >= options_.n_seqs)
      return Error(ErrorCode::kInvalid, fmt::format("there is no sequence {}", token.seq), "seq");
  }
  const std::size_t n_wanted = batch.size() * static_cast<std::size_t>(part_.n_activation());
  if (activations.size() != n_wanted)
    return Error(
        ErrorCode::kInvalid,
        fmt::format("this part of the model starts from {} activations here, not {}", n_wanted, activations.size()),
        "activations");
  if (part_.has_head() == (output == StepOutput::kActivations))
    return Error(ErrorCode::kInvalid,
                 part_.has_head() ? "the last part of a model gives logits" : "this part of the model has no head",
                 "output");
  return {};
}

std::vector<uint32_t> StepRunner::evaluation_order(std::span<const BatchToken> batch) const {
  std::vector<uint32_t> order(batch.size());
  std::iota(order.begin(), order.end(), 0u);
  if (!memory_->recurrent().any()) return order;
  // Lanes of equal length stand together, so that one operation takes them all.
  std::vector<std::size_t> n_tokens(options_.n_seqs, 0);
  for (const BatchToken& token : batch) ++n_tokens[static_cast<std::size_t>(token.seq)];
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const SeqId seq_a = batch[a].seq, seq_b = batch[b].seq;
    return std::pair(n_tokens[static_cast<std::size_t>(seq_a)], seq_a) <
           std::pair(n_tokens[static_cast<std::size_t>(seq_b)], seq_b);
  });
  return order;
}

Result<void> StepRunner::prepare_graph(const StepShape& shape) {
  if (graph_ && graph_->shape() == shape) return {};
  graph_.reset();
  auto graph = std::make_unique<StepGraph>(
      shape, *memory_,
      part_.graph_options(uses_flash_attention(options_), options_.n_ctx, shape.lanes.size(), model_.kernels()));
  part_.build(*graph);
  TRY(executor_->allocate(graph->graph()));
  graph_ = std::move(graph);
  return {};
}

Result<void> StepRunner::step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) {
  return step_from({}, batch, output, cancel);
}

Result<void> StepRunner::step_from(std::span<const float> activations, std::span<const BatchToken> batch,
                                   StepOutput output, const CancelToken& cancel) {
  TRY(check(activations, batch, output));
  const std::vector<uint32_t> order = evaluation_order(batch);
  std::vector<uint32_t> place_of(batch.size());  // where a token of the batch is evaluated
  std::vector<SeqId> seqs;
  std::vector<int32_t> tokens;
  std::vector<float> ordered;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const BatchToken& token = batch[order[i]];
    place_of[order[i]] = static_cast<uint32_t>(i);
    seqs.push_back(token.seq);
    tokens.push_back(token.id);
  }
  const auto width = static_cast<std::size_t>(part_.n_activation());
  for (const uint32_t i : order) {
    const auto row = activations.subspan(activations.empty() ? 0 : i * width, activations.empty() ? 0 : width);
    ordered.insert(ordered.end(), row.begin(), row.end());
  }
  std::vector<uint32_t> rows;
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (batch[i].output || output == StepOutput::kActivations) rows.push_back(place_of[i]);
  const std::size_t n_wanted = rows.size();
  // The graph always has a result; without a wanted row it is one that nobody reads.
  if (rows.empty()) rows.push_back(static_cast<uint32_t>(batch.size() - 1));

  TRY_ASSIGN(const StepPlacement placement, memory_->place(seqs));
  for (const PlacedToken& token : placement.kv.tokens)
    if (static_cast<std::size_t>(token.position) >= options_.n_ctx)
      return Error(ErrorCode::kBusy, fmt::format("the context of {} tokens is full", options_.n_ctx), "ctx-size");
  StepShape shape = step_shape(placement, batch.size(), rows.size(), output);
  if (output == StepOutput::kLogits || output == StepOutput::kLogitsAndHidden) shape.first_logit = first_logit_;
  TRY(prepare_graph(shape));
  fill_inputs(*graph_, *memory_, placement, {tokens, ordered, rows});
  TRY(executor_->run(graph_->graph(), cancel));

  memory_->commit(placement);
  n_outputs_ = n_wanted;
  std::vector<uint32_t> result_rows = rows;  // as they are when nothing was trimmed
  if (graph_->output_rows()) std::iota(result_rows.begin(), result_rows.end(), 0u);
  result_rows.resize(n_wanted);
  results_.read(graph_->result(), result_rows, static_cast<std::size_t>(shape.first_logit));
  hidden_.values.clear();
  if (graph_->hidden()) hidden_.read(graph_->hidden(), place_of);
  return {};
}

void StepRunner::skip_logits_below(int32_t token) {
  CHECK(token >= 0 && static_cast<std::size_t>(token) < model_.n_vocab());
  first_logit_ = token / kFirstOutStep * kFirstOutStep;
}

void StepRunner::RowsBack::read(Tensor tensor, std::span<const uint32_t> order, std::size_t n_skipped) {
  const auto n = static_cast<std::size_t>(tensor->ne[0]);
  width = n_skipped + n;
  values.resize(order.size() * width);
  if (n_skipped == 0 && std::is_sorted(order.begin(), order.end()) &&
      (order.empty() || order.back() + 1 == order.size())) {
    ggml_backend_tensor_get(tensor, values.data(), 0, values.size() * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    float* row = values.data() + i * width;
    std::fill_n(row, n_skipped, -std::numeric_limits<float>::infinity());
    ggml_backend_tensor_get(tensor, row + n_skipped, order[i] * tensor->nb[1], n * sizeof(float));
  }
}

std::span<const float> StepRunner::output(std::size_t i) const {
  CHECK(i < n_outputs_);
  return results_.row(i);
}

std::span<const float> StepRunner::hidden(std::size_t i) const {
  CHECK((i + 1) * hidden_.width <= hidden_.values.size());
  return hidden_.row(i);
}

}  // namespace hocket
