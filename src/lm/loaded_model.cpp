#include "lm/loaded_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "compute/executor.h"
#include "lm/step_runner.h"

namespace hocket {

namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kHead = "output.weight";
// Generous: an attention layer of today takes under 40.
constexpr std::size_t kNodesPerLayer = 128;

ModelSummary summarise(const HParams& hp, const Metadata& metadata) {
  ModelSummary summary;
  summary.arch = hp.arch;
  if (auto name = metadata.string_or("general.name", ""); name.ok()) summary.name = *std::move(name);
  summary.n_layer = static_cast<std::size_t>(hp.n_layer);
  summary.n_embd = static_cast<std::size_t>(hp.n_embd);
  summary.n_head = static_cast<std::size_t>(hp.n_head[0]);
  summary.n_kv_head = static_cast<std::size_t>(hp.n_kv_head[0]);
  summary.n_vocab = static_cast<std::size_t>(hp.n_vocab);
  summary.n_ctx_train = static_cast<std::size_t>(hp.n_ctx_train);
  summary.pooling = hp.pooling;
  return summary;
}

// The type that most weights (by elements) have.
void count_types(const GgufFile& file, ModelSummary& summary) {
  std::map<ggml_type, uint64_t> elements;
  for (const TensorInfo& tensor : file.tensors()) {
    const auto n = static_cast<uint64_t>(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]);
    elements[tensor.type] += n;
    summary.n_params += n;
    summary.weight_bytes += tensor.n_bytes;
  }
  uint64_t most = 0;
  for (const auto& [type, n] : elements)
    if (n > most) {
      most = n;
      summary.quantisation = ggml_type_name(type);
    }
  for (char& c : summary.quantisation) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
}

Result<int64_t> vocabulary_size(const GgufFile& file) {
  const TensorInfo* embedding = file.find(kEmbedding);
  if (!embedding)
    return Error(ErrorCode::kBadModel, fmt::format("tensor {} is missing", kEmbedding), std::string(kEmbedding));
  return embedding->ne[1];
}

Result<std::unique_ptr<LoadedModel>> declare_file(const GgufFile& file, std::shared_ptr<const GgufFile> shared,
                                                  ggml_backend_dev_t device, bool repack) {
  TRY_ASSIGN(const std::string type, file.metadata().string_or("general.type", "model"));
  if (type != "model")
    return Error(ErrorCode::kUnsupported, fmt::format("this file is a \"{}\", not a model", type), "general.type");
  TRY_ASSIGN(const int64_t n_vocab, vocabulary_size(file));
  return LoadedModel::declare(file.metadata(), std::make_shared<FileWeights>(std::move(shared)), n_vocab, device,
                              repack);
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::declare(const Metadata& metadata,
                                                          std::shared_ptr<WeightSource> source, int64_t n_vocab,
                                                          ggml_backend_dev_t device, bool repack) {
  TRY_ASSIGN(const std::string arch, metadata.string("general.architecture"));
  const ArchitectureRow* row = nullptr;
  for (const ArchitectureRow& candidate : architectures())
    if (candidate.name == arch) row = &candidate;
  if (!row)
    return Error(ErrorCode::kUnsupported,
                 fmt::format("architecture \"{}\" is not supported; supported: {}", arch,
                             fmt::join(supported_architectures(), ", ")),
                 "general.architecture");

  std::unique_ptr<LoadedModel> model(new LoadedModel());
  model->device_ = device;
  TRY_ASSIGN(model->hp_, HParams::read(metadata, n_vocab));
  const HParams& hp = model->hp_;
  TRY_ASSIGN(model->arch_, row->make(hp, metadata));
  model->frame_ = model->arch_->frame();
  model->summary_ = summarise(hp, metadata);

  model->weights_ = std::make_unique<WeightSet>(std::move(source), device, repack);
  WeightSet& weights = *model->weights_;
  model->token_embd_ = weights.table(kEmbedding, {hp.n_embd, hp.n_vocab});
  model->output_norm_ = RmsNorm::make(weights, std::string(model->frame_.output_norm), hp.n_embd, hp.rms_eps);
  if (weights.has(kHead, {hp.n_embd, hp.n_vocab}))
    model->output_ = Linear::make(weights, "output", hp.n_embd, hp.n_vocab, model->frame_.head_bias);
  else
    model->output_.weight = weights.matrix(kEmbedding, {hp.n_embd, hp.n_vocab});
  model->arch_->make_weights(weights);
  TRY(weights.status());
  return model;
}

std::vector<KvLayerSpec> LoadedModel::memory_layout() const {
  std::vector<KvLayerSpec> layers;
  for (std::size_t il = 0; il < arch_->n_layer(); ++il) layers.push_back(arch_->memory_of(il));
  return layers;
}

std::size_t LoadedModel::max_nodes() const {
  return 64 + kNodesPerLayer * arch_->n_layer();
}

void LoadedModel::build(StepGraph& g) const {
  ggml_context* c = g.context();
  Tensor x = ggml_get_rows(c, token_embd_, g.tokens());  // [n_embd, n_tokens] F32
  if (frame_.embedding_scale != 1.0f) x = ggml_scale(c, x, frame_.embedding_scale);
  for (std::size_t il = 0; il < arch_->n_layer(); ++il) {
    g.set_last_layer(il + 1 == arch_->n_layer());
    x = arch_->run_layer(g, il, x);
  }
  x = output_norm_.run(g, x);  // [n_embd, n_outputs]
  if (g.shape().hidden) {
    g.set_result(x);
    return;
  }
  Tensor logits = output_.run(g, x);
  if (frame_.logit_scale != 1.0f) logits = ggml_scale(c, logits, frame_.logit_scale);
  if (const float cap = frame_.final_softcap; cap != 0.0f)
    logits = ggml_scale(c, ggml_tanh(c, ggml_scale(c, logits, 1.0f / cap)), cap);
  g.set_result(logits);
}

MemoryPlan LoadedModel::plan(const RunnerOptions& options) const {
  MemoryPlan plan;
  plan.weight_bytes = weights_->weight_bytes();
  const KvCacheOptions cache_options = kv_cache_options(options);
  plan.cache_bytes = KvCache::bytes(memory_layout(), cache_options);
  auto executor = Executor::create(device_, 1, max_nodes());
  if (!executor.ok()) return plan;
  const auto cache = KvCache::without_data(memory_layout(), cache_options, device_);
  StepGraph g(largest_step(*cache, options), *cache, uses_flash_attention(options), max_nodes());
  build(g);
  plan.compute_bytes = (*executor)->measure(g.graph());
  return plan;
}

// ---- language_model.h

Result<std::unique_ptr<LanguageModel>> LanguageModel::load(std::shared_ptr<const GgufFile> file,
                                                           const LoadOptions& options) {
  TRY_ASSIGN(const ggml_backend_dev_t device, find_device(options.device));
  TRY_ASSIGN(auto model, declare_file(*file, file, device, options.repack));
  TRY(model->weights().load(options.progress));
  ModelSummary summary = model->summary();
  count_types(*file, summary);
  model->set_summary(std::move(summary));
  return std::unique_ptr<LanguageModel>(std::move(model));
}

Result<std::unique_ptr<LanguageModel>> LanguageModel::synthetic(const Metadata& metadata, uint64_t seed,
                                                                int64_t n_vocab) {
  TRY_ASSIGN(const ggml_backend_dev_t device, find_device(""));
  TRY_ASSIGN(auto model,
             LoadedModel::declare(metadata, std::make_shared<SyntheticWeights>(seed), n_vocab, device, true));
  TRY(model->weights().load({}));
  return std::unique_ptr<LanguageModel>(std::move(model));
}

// A file that is borrowed for the call, in the shape that FileWeights wants.
static std::shared_ptr<const GgufFile> borrowed(const GgufFile& file) {
  return {std::shared_ptr<const GgufFile>(), &file};
}

Result<ModelSummary> inspect_model(const GgufFile& file) {
  TRY_ASSIGN(const ggml_backend_dev_t device, find_device(""));
  TRY_ASSIGN(const auto model, declare_file(file, borrowed(file), device, false));
  ModelSummary summary = model->summary();
  count_types(file, summary);
  return summary;
}

Result<MemoryPlan> plan_memory(const GgufFile& file, const RunnerOptions& options, const LoadOptions& load) {
  TRY_ASSIGN(const ggml_backend_dev_t device, find_device(load.device));
  TRY_ASSIGN(const auto model, declare_file(file, borrowed(file), device, load.repack));
  model->weights().place_without_data();
  return model->plan(options);
}

std::vector<std::string> supported_architectures() {
  std::vector<std::string> names;
  for (const ArchitectureRow& row : architectures()) names.emplace_back(row.name);
  return names;
}

}  // namespace hocket
