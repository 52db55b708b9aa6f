// lm/blocks/temperature.h: queries that grow with their position p, as q · (1 + s · ln(1 + ⌊p / L⌋)), so that attention
// stays as sharp over long contexts. Source: language-models.md §3.1 "mistral3".
#pragma once

#include "lm/hparams.h"
#include "lm/step_graph.h"
#include "weights/metadata.h"

namespace hocket {

struct AttentionTemperature {
  float scale = 0.0f;  // s; 0: none
  int64_t length = 1;  // L, in tokens

  // Reads attention.temperature_scale, and L as the context before it was extended.
  static Result<AttentionTemperature> read(const HParams& hp, const Metadata& metadata);
  // q [head_dim, n_head, n_queries] → the same shape.
  Tensor run(StepGraph& g, Tensor q) const;
};

}  // namespace hocket
