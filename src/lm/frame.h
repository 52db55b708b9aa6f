// lm/frame.h: what stands around the layers: embedding, final norm and head.
//
// Owns     nothing: weights belong to the model.
// Threads  const.
// Source   language-models.md §1.6.
#pragma once

#include "lm/architecture.h"
#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"

namespace hocket {

struct Embedding {
  Tensor table = nullptr;  // [n_embd, n_vocab]
  float scale = 1.0f;

  static Embedding make(WeightSet& weights, const HParams& hp, const FrameSpec& frame, std::string_view name);
  // → [n_embd, n_tokens] F32.
  Tensor run(StepGraph& g) const;
};

struct Head {
  Linear output;  // [n_embd, n_vocab]
  float logit_scale = 1.0f;
  float softcap = 0.0f;

  // `output`, or the embedding's table when the file has none.
  static Head make(WeightSet& weights, const HParams& hp, const FrameSpec& frame);
  // x [n_embd, n] after the final norm → [n_vocab − first_logit of the step's shape, n].
  Tensor run(StepGraph& g, Tensor x) const;
};

// Final norm, trimming to the wanted rows, head: sets the graph's results as its shape asks. x [n_embd, n_tokens], or
// the wanted rows when the last layer trimmed.
void finish(StepGraph& g, const RmsNorm& norm, const Head& head, Tensor x);

}  // namespace hocket
