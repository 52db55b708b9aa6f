// lm/loaded_model.h: the inside of a LanguageModel: its architecture, its weights and the parts that runners run.
//
// Owns     weights, architecture, parts.
// Threads  const after load.
#pragma once

#include <memory>
#include <string>

#include "lm/architecture.h"
#include "lm/language_model.h"
#include "lm/nextn.h"
#include "lm/trunk.h"

namespace hocket {

class LoadedModel final : public LanguageModel {
 public:
  // kRequired: a model that counts NextN blocks must have them (synthetic weights make every tensor).
  enum class Nextn { kLeaveOut, kIfPresent, kRequired, kAlone };
  struct DeclareOptions {
    int64_t n_vocab = 0;
    ggml_backend_dev_t device = nullptr;
    bool repack = true;
    const KernelTable* kernels = nullptr;  // our own; nullptr: ggml's
    LayerRange layers;
    Nextn nextn = Nextn::kIfPresent;
  };
  // Declares every weight; nothing is loaded yet.
  static Result<std::unique_ptr<LoadedModel>> declare(const Metadata& metadata, std::shared_ptr<WeightSource> source,
                                                      const DeclareOptions& options);

  const ModelSummary& summary() const override { return summary_; }
  std::size_t n_vocab() const override { return static_cast<std::size_t>(hp_.n_vocab); }
  MemoryPlan plan(const RunnerOptions& options) const override;
  MemoryPlan plan_nextn(const RunnerOptions& options) const override;

  void set_summary(ModelSummary summary) { summary_ = std::move(summary); }
  WeightSet& weights() { return *weights_; }
  const WeightSet& weights() const { return *weights_; }
  const HParams& hparams() const { return hp_; }
  ggml_backend_dev_t device() const { return device_; }
  const KernelTable* kernels() const { return kernels_; }  // nullptr: ggml's
  const ModelPart* trunk() const { return trunk_.get(); }  // nullptr: the block was loaded alone
  const ModelPart* nextn() const { return nextn_.get(); }  // nullptr: none

 private:
  // Cache and compute buffers.
  MemoryPlan plan_part(const ModelPart& part, const RunnerOptions& options) const;

  HParams hp_;
  ModelSummary summary_;
  std::unique_ptr<Architecture> arch_;
  std::unique_ptr<WeightSet> weights_;
  ggml_backend_dev_t device_ = nullptr;
  const KernelTable* kernels_ = nullptr;
  std::unique_ptr<Trunk> trunk_;
  std::unique_ptr<NextnBlock> nextn_;
};

}  // namespace hocket
