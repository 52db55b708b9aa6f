// lm/blocks/mixed_block.h: a pre-norm layer whose mixer is one of several kinds, another in each layer:
// x += mixer(norm(x)); x += ffn(norm(x)).
//
// A mixer has run(StepGraph&, layer, h), or the same with rope factors, of which it gets none.
// Source   language-models.md §3.0 "Residual frame".
#pragma once

#include <variant>

#include "lm/blocks/feed_forward.h"
#include "lm/blocks/norm.h"

namespace hocket {

template <class... Mixers>
struct MixedBlock {
  using Mixer = std::variant<Mixers...>;

  RmsNorm attn_norm;
  Mixer mixer;
  RmsNorm ffn_norm;
  FeedForward ffn;

  // Takes `prefix`attn_norm and the norm before the feed-forward; mixer and feed-forward are made by the architecture.
  static MixedBlock make(WeightSet& weights, const std::string& prefix, const HParams& hp, Mixer mixer, FeedForward ffn,
                         const char* ffn_norm = "ffn_norm") {
    return {RmsNorm::make(weights, prefix + "attn_norm", hp.n_embd, hp.rms_eps), std::move(mixer),
            RmsNorm::make(weights, prefix + ffn_norm, hp.n_embd, hp.rms_eps), std::move(ffn)};
  }
  // x [n_embd, n_tokens] → [n_embd, n_tokens], or the wanted rows in the last layer.
  Tensor run(StepGraph& g, std::size_t il, Tensor x) const {
    Tensor h = attn_norm.run(g, x);
    Tensor y = std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.run(g, il, h); }) {
            return m.run(g, il, h);
          } else {
            return m.run(g, il, h, nullptr);
          }
        },
        mixer);
    x = g.residual(x, y);
    return g.residual(x, ffn.run(g, ffn_norm.run(g, x)));
  }
};

}  // namespace hocket
