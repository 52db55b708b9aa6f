// lm/loaded_model.h: the inside of a LanguageModel: what the runner needs to build graphs.
//
// Owns     weights and architecture.
// Threads  const after load.
#pragma once

#include <memory>
#include <string>

#include "lm/architecture.h"
#include "lm/blocks/norm.h"
#include "lm/language_model.h"

namespace hocket {

class LoadedModel final : public LanguageModel {
 public:
  // Declares every weight; nothing is loaded yet.
  static Result<std::unique_ptr<LoadedModel>> declare(const Metadata& metadata, std::shared_ptr<WeightSource> source,
                                                      int64_t n_vocab, ggml_backend_dev_t device, bool repack);

  const ModelSummary& summary() const override { return summary_; }
  std::size_t n_vocab() const override { return static_cast<std::size_t>(hp_.n_vocab); }
  MemoryPlan plan(const RunnerOptions& options) const override;

  void set_summary(ModelSummary summary) { summary_ = std::move(summary); }
  WeightSet& weights() { return *weights_; }
  const HParams& hparams() const { return hp_; }
  ggml_backend_dev_t device() const { return device_; }
  std::vector<KvLayerSpec> memory_layout() const;
  // Nodes that a graph of this model may need at most.
  std::size_t max_nodes() const;
  // Embedding, all layers, final norm and head; sets the graph's result.
  void build(StepGraph& g) const;

 private:
  HParams hp_;
  ModelSummary summary_;
  std::unique_ptr<Architecture> arch_;
  std::unique_ptr<WeightSet> weights_;
  ggml_backend_dev_t device_ = nullptr;
  FrameSpec frame_;
  Tensor token_embd_ = nullptr;  // [n_embd, n_vocab]
  RmsNorm output_norm_;
  Linear output_;  // [n_embd, n_vocab]; the embedding's weight when the head is tied
};

}  // namespace hocket
