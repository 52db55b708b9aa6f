// lm/arch/kda_hybrid.h: a stack of KDA layers with latent attention where attention.head_count_kv is not 0, described
// by settings that a family fills in in its read().
//
// Threads  const.
// Source   language-models.md §§3.8, 3.10.
#pragma once

#include "lm/arch/registry.h"
#include "lm/blocks/kda.h"
#include "lm/blocks/mixed_block.h"
#include "lm/blocks/mla.h"

namespace hocket {

struct KdaHybrid {
  using Layer = MixedBlock<Kda, Mla>;
  HParams hp;
  KdaSpec kda;
  MlaSpec mla;
  FeedForwardSpec ffn;

  bool latent(std::size_t il) const { return hp.n_kv_head[il] != 0; }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    const auto mixer = [&]() -> Layer::Mixer {
      if (latent(il)) return Mla::make(w, p, mla);
      return Kda::make(w, p, kda);
    };
    return Layer::make(w, p, hp, mixer(), FeedForward::make(w, p, ffn, il));
  }
  LayerMemory memory_of(std::size_t il) const {
    if (latent(il)) return {.kv = mla.memory()};
    return {.recurrent = kda.memory()};
  }
  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const { return l.run(g, il, x); }
};

}  // namespace hocket
