// memory/model_memory.h: everything that the layers of a model remember: rows of attention and states of recurrence in
// one sequence.
//
// A step goes: place() finds cells and rows, the graph reads and writes them, commit() makes them part of the
// sequences. Without commit() nothing has happened.
//
// Owns     a KvCache and a RecurrentState, either of which may be empty.
// Threads  one user at a time.
// Errors   those of the two; restore() checks everything before it changes anything.
// Cost     the sum of the two.
#pragma once

#include "memory/kv_cache.h"
#include "memory/recurrent_state.h"

namespace hocket {

struct ModelMemoryOptions {
  KvCacheOptions kv;
  RecurrentOptions recurrent;
};

// Where the tokens of a step go.
struct StepPlacement {
  Placement kv;
  std::vector<Lane> lanes;  // in batch order; empty when no layer is recurrent
};

class ModelMemory final : public SequenceMemory {
 public:
  static Result<std::unique_ptr<ModelMemory>> create(const std::vector<LayerMemory>& layers,
                                                     const ModelMemoryOptions& options, ggml_backend_dev_t device);
  // With tensors of the right shape and no memory, to measure graphs with.
  static std::unique_ptr<ModelMemory> without_data(const std::vector<LayerMemory>& layers,
                                                   const ModelMemoryOptions& options, ggml_backend_dev_t device);
  // Bytes that create() would take.
  static std::size_t bytes(const std::vector<LayerMemory>& layers, const ModelMemoryOptions& options);

  const KvCache& kv() const { return *kv_; }
  const RecurrentState& recurrent() const { return *recurrent_; }

  // The sequence of each token. With recurrent layers the tokens of a sequence must stand together.
  Result<StepPlacement> place(std::span<const SeqId> seqs);
  void commit(const StepPlacement& placement);

  // ---- SequenceMemory
  MemoryTraits traits() const override;
  std::size_t n_seqs() const override { return kv_->n_seqs(); }
  std::size_t n_cells() const override { return kv_->n_cells(); }
  std::size_t n_free_cells() const override { return kv_->n_free_cells(); }
  std::size_t length(SeqId seq) const override { return kv_->length(seq); }
  bool can_truncate(SeqId seq, std::size_t n_tokens) const override;
  Result<void> truncate(SeqId seq, std::size_t n_tokens) override;
  void clear(SeqId seq) override;
  void checkpoint(SeqId seq) override { recurrent_->checkpoint(seq); }
  Result<void> fork(SeqId source, SeqId target) override;
  Result<std::vector<std::byte>> snapshot(SeqId seq) const override;
  Result<void> restore(SeqId seq, std::span<const std::byte> snapshot) override;

 private:
  std::unique_ptr<KvCache> kv_;
  std::unique_ptr<RecurrentState> recurrent_;
  std::size_t recurrent_bytes_ = 0;
};

}  // namespace hocket
