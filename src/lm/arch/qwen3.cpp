// qwen3: Qwen 3, dense.
//
// As llama, with half-split rope and an RMS norm of every query and key head; the head size does not follow from the
// width. Source: language-models.md §3.2.
#include "lm/arch/registry.h"
#include "lm/blocks/attention.h"
#include "lm/blocks/mlp.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

struct Qwen3 {
  struct Layer {
    RmsNorm attn_norm;
    Attention attn;
    RmsNorm ffn_norm;
    GatedMlp ffn;
  };
  HParams hp;
  RopeFactors factors;

  static Result<Qwen3> read(const HParams& hp, const Metadata&) {
    Qwen3 arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    return arch;
  }

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.head_norm = true;
    return {RmsNorm::make(w, p + "attn_norm", hp.n_embd, hp.rms_eps), Attention::make(w, p, attn),
            RmsNorm::make(w, p + "ffn_norm", hp.n_embd, hp.rms_eps),
            GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kSilu)};
  }

  KvLayerSpec memory_of(std::size_t il) const { return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, 0}; }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    x = g.residual(x, l.attn.run(g, il, l.attn_norm.run(g, x), factors.get(g)));
    return g.residual(x, l.ffn.run(g, l.ffn_norm.run(g, x)));
  }
};

}  // namespace

ArchitectureFactory qwen3_architecture() {
  return ArchitectureOf<Qwen3>::make;
}

}  // namespace hocket
