// lm/nextn.h: a NextN block (multi-token prediction): guesses the token after the next one.
//
// For position p it takes the token x_p and the trunk's hidden state h_{p−1} (after the final norm), and gives logits
// of token p + 1 and, as its own hidden state, what a further guess starts from:
//   z = eh_proj · concat(rms(E[x_p]; enorm), rms(h_{p−1}; hnorm)); y = rms(layer(z); head norm); logits = head · y
//
// Owns     nothing; weights are declared in the model's WeightSet.
// Threads  const after construction.
// Source   language-models.md §§5.1, 5.2.
#pragma once

#include "lm/frame.h"
#include "lm/model_part.h"

namespace hocket {

class NextnBlock final : public ModelPart {
 public:
  // Block `il` ≥ n_layer. The block's own embedding, head and norm where the file has them, else the trunk's.
  NextnBlock(Architecture& arch, const HParams& hp, WeightSet& weights, std::size_t il);
  // Whether the file holds the tensors of block `il`.
  static bool present(const HParams& hp, WeightSet& weights, std::size_t il);

  std::vector<LayerMemory> memory_layout() const override { return {arch_.memory_of(il_)}; }
  std::size_t first_layer() const override { return il_; }
  int64_t n_activation() const override { return n_embd_; }
  bool has_head() const override { return true; }
  std::size_t max_nodes(std::size_t n_lane_groups) const override;
  void build(StepGraph& g) const override;

 private:
  const Architecture& arch_;
  std::size_t il_;
  int64_t n_embd_;
  Embedding embedding_;
  RmsNorm embedding_norm_, hidden_norm_, head_norm_;
  Linear projection_;  // [2 · n_embd, n_embd], the embedding's half first
  Head head_;
};

}  // namespace hocket
