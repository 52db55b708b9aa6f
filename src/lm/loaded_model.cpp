#include "lm/loaded_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "compute/executor.h"
#include "compute/kernels/kernel_table.h"
#include "lm/step_runner.h"

namespace hocket {

namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";

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

Result<const KernelTable*> chosen_kernels(const std::string& name) {
  if (name == "ggml") return static_cast<const KernelTable*>(nullptr);
  const KernelTable* kernels = find_kernels(name);
  if (!kernels && name != "auto")
    return Error(ErrorCode::kUnsupported,
                 fmt::format("no kernels \"{}\" here; there are: {}", name, describe_kernels()), "cpu-kernels");
  return kernels;
}

Result<std::unique_ptr<LoadedModel>> declare_file(const GgufFile& file, std::shared_ptr<const GgufFile> shared,
                                                  const LoadOptions& load) {
  TRY_ASSIGN(const std::string type, file.metadata().string_or("general.type", "model"));
  if (type != "model")
    return Error(ErrorCode::kUnsupported, fmt::format("this file is a \"{}\", not a model", type), "general.type");
  LoadedModel::DeclareOptions options;
  TRY_ASSIGN(options.device, find_device(load.device));
  TRY_ASSIGN(options.n_vocab, vocabulary_size(file));
  options.repack = load.repack;
  TRY_ASSIGN(options.kernels, chosen_kernels(load.cpu_kernels));
  options.layers = load.layers;
  switch (load.nextn) {
    case LoadOptions::Nextn::kLeaveOut:
      options.nextn = LoadedModel::Nextn::kLeaveOut;
      break;
    case LoadOptions::Nextn::kIfPresent:
      options.nextn = LoadedModel::Nextn::kIfPresent;
      break;
    case LoadOptions::Nextn::kAlone:
      options.nextn = LoadedModel::Nextn::kAlone;
      break;
  }
  return LoadedModel::declare(file.metadata(), std::make_shared<FileWeights>(std::move(shared)), options);
}

Result<LayerRange> checked_range(const LayerRange& asked, const HParams& hp, const Architecture& arch) {
  const auto n_layer = static_cast<std::size_t>(hp.n_layer);
  const LayerRange range{asked.first, asked.end == 0 ? n_layer : asked.end};
  if (range.first >= range.end || range.end > n_layer)
    return Error(ErrorCode::kInvalid,
                 fmt::format("layers {} to {} are no range of a model of {} layers", asked.first, asked.end, n_layer),
                 "layers");
  for (const std::size_t cut : {range.first, range.end})
    if (cut > 0 && cut < n_layer && !arch.can_start_at(cut))
      return Error(ErrorCode::kUnsupported, fmt::format("{} models cannot be cut before layer {}", hp.arch, cut),
                   "layers");
  return range;
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::declare(const Metadata& metadata,
                                                          std::shared_ptr<WeightSource> source,
                                                          const DeclareOptions& options) {
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
  model->device_ = options.device;
  if (ggml_backend_dev_type(options.device) == GGML_BACKEND_DEVICE_TYPE_CPU) model->kernels_ = options.kernels;
  TRY_ASSIGN(model->hp_, HParams::read(metadata, options.n_vocab));
  const HParams& hp = model->hp_;
  TRY_ASSIGN(model->arch_, row->make(hp, metadata));
  TRY_ASSIGN(const LayerRange range, checked_range(options.layers, hp, *model->arch_));
  model->summary_ = summarise(hp, metadata);

  model->weights_ = std::make_unique<WeightSet>(std::move(source), options.device, options.repack, options.kernels);
  WeightSet& weights = *model->weights_;
  const bool alone = options.nextn == Nextn::kAlone;
  if (alone) {
    model->arch_->make_globals(weights);
  } else {
    model->trunk_ = std::make_unique<Trunk>(*model->arch_, hp, weights, range.first, range.end);
  }
  const auto first_nextn = static_cast<std::size_t>(hp.n_layer);
  const bool wanted =
      hp.n_block > hp.n_layer && options.nextn != Nextn::kLeaveOut && (alone || model->trunk_->has_head());
  if (wanted && (options.nextn == Nextn::kRequired || NextnBlock::present(hp, weights, first_nextn)))
    model->nextn_ = std::make_unique<NextnBlock>(*model->arch_, hp, weights, first_nextn);
  if (alone && !model->nextn_)
    return Error(ErrorCode::kBadModel, "the file has no NextN block to draft with", hp.key("nextn_predict_layers"));
  model->summary_.nextn = model->nextn_ != nullptr;
  TRY(weights.status());
  model->summary_.kernels = weights.kernels();
  return model;
}

MemoryPlan LoadedModel::plan(const RunnerOptions& options) const {
  MemoryPlan plan = trunk_ ? plan_part(*trunk_, options) : MemoryPlan();
  plan.weight_bytes = weights_->weight_bytes();
  return plan;
}

MemoryPlan LoadedModel::plan_nextn(const RunnerOptions& options) const {
  MemoryPlan plan = nextn_ ? plan_part(*nextn_, options) : MemoryPlan();
  if (!trunk_) plan.weight_bytes = weights_->weight_bytes();
  return plan;
}

MemoryPlan LoadedModel::plan_part(const ModelPart& part, const RunnerOptions& options) const {
  MemoryPlan plan;
  const std::vector<LayerMemory> layers = part.memory_layout();
  plan.cache_bytes = ModelMemory::bytes(layers, memory_options(options));
  const auto memory = ModelMemory::without_data(layers, memory_options(options), device_);
  auto executor = Executor::create(device_, 1, part.max_nodes(1));
  if (!executor.ok()) return plan;
  StepGraph g(largest_step(*memory, options), *memory,
              part.graph_options(uses_flash_attention(options), options.n_ctx, 1, kernels_));
  part.build(g);
  plan.compute_bytes = (*executor)->measure(g.graph());
  return plan;
}

// ---- language_model.h

Result<std::unique_ptr<LanguageModel>> LanguageModel::load(std::shared_ptr<const GgufFile> file,
                                                           const LoadOptions& options) {
  TRY_ASSIGN(auto model, declare_file(*file, file, options));
  TRY(model->weights().load(options.progress));
  ModelSummary summary = model->summary();
  count_types(*file, summary);
  model->set_summary(std::move(summary));
  return std::unique_ptr<LanguageModel>(std::move(model));
}

Result<std::unique_ptr<LanguageModel>> LanguageModel::synthetic(const Metadata& metadata, uint64_t seed,
                                                                int64_t n_vocab, LayerRange layers) {
  LoadedModel::DeclareOptions options;
  TRY_ASSIGN(options.device, find_device(""));
  options.n_vocab = n_vocab;
  options.layers = layers;
  options.nextn = LoadedModel::Nextn::kRequired;
  TRY_ASSIGN(auto model, LoadedModel::declare(metadata, std::make_shared<SyntheticWeights>(seed), options));
  TRY(model->weights().load({}));
  return std::unique_ptr<LanguageModel>(std::move(model));
}

// A file that is borrowed for the call, in the shape that FileWeights wants.
static std::shared_ptr<const GgufFile> borrowed(const GgufFile& file) {
  return {std::shared_ptr<const GgufFile>(), &file};
}

Result<ModelSummary> inspect_model(const GgufFile& file, const LoadOptions& load) {
  TRY_ASSIGN(const auto model, declare_file(file, borrowed(file), load));
  ModelSummary summary = model->summary();
  count_types(file, summary);
  return summary;
}

Result<MemoryPlan> plan_memory(const GgufFile& file, const RunnerOptions& options, const LoadOptions& load) {
  TRY_ASSIGN(const auto model, declare_file(file, borrowed(file), load));
  model->weights().place_without_data();
  return model->plan(options);
}

Result<MemoryPlan> plan_nextn_memory(const GgufFile& file, const RunnerOptions& options, const LoadOptions& load) {
  TRY_ASSIGN(const auto model, declare_file(file, borrowed(file), load));
  model->weights().place_without_data();
  return model->plan_nextn(options);
}

std::vector<std::string> supported_architectures() {
  std::vector<std::string> names;
  for (const ArchitectureRow& row : architectures()) names.emplace_back(row.name);
  return names;
}

}  // namespace hocket
