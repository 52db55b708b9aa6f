// gemma3: Gemma 3 (text).
//
// Norms before and after each sublayer, an RMS norm of every query and key head, GELU-gated feed-forward, embeddings
// scaled by √n_embd, tied head. Five of six layers see only a window and have a rope of their own. The norms' +1 is
// already in the weights. Source: language-models.md §§1.7, 3.3.
#include <cmath>

#include "lm/arch/registry.h"
#include "lm/blocks/attention.h"
#include "lm/blocks/mlp.h"

namespace hocket {

namespace {

constexpr std::size_t kPeriod = 6;    // the last layer of each six sees everything
constexpr int64_t kLayersOf27B = 62;  // the one size whose scores are scaled by the width, not by the head size

struct Gemma3 {
  struct Layer {
    RmsNorm attn_norm;
    Attention attn;
    RmsNorm post_attention_norm;
    RmsNorm ffn_norm;
    GatedMlp ffn;
    RmsNorm post_ffw_norm;
  };
  HParams hp;
  std::vector<bool> windowed;  // per layer

  static Result<Gemma3> read(const HParams& hp, const Metadata& metadata) {
    Gemma3 arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    if (hp.n_layer == kLayersOf27B && hp.attn_scale == 0.0f)
      arch.hp.attn_scale = 1.0f / std::sqrt(static_cast<float>(hp.n_embd) / static_cast<float>(hp.n_head[0]));
    TRY_ASSIGN(arch.windowed, read_window_pattern(hp, metadata, kPeriod));
    return arch;
  }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.head_norm = true;
    if (windowed[il]) {
      attn.rope.freq_base = hp.rope_base_swa;
      attn.rope.freq_scale = 1.0f;
    }
    const auto norm = [&](const char* name) { return RmsNorm::make(w, p + name, hp.n_embd, hp.rms_eps); };
    return {norm("attn_norm"),
            Attention::make(w, p, attn),
            norm("post_attention_norm"),
            norm("ffn_norm"),
            GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kGelu),
            norm("post_ffw_norm")};
  }

  KvLayerSpec memory_of(std::size_t il) const {
    return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, windowed[il] ? static_cast<std::size_t>(hp.n_swa) : 0};
  }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    Tensor a = l.attn.run(g, il, l.attn_norm.run(g, x), nullptr);
    x = g.residual(x, l.post_attention_norm.run(g, a));
    Tensor f = l.ffn.run(g, l.ffn_norm.run(g, x));
    return g.residual(x, l.post_ffw_norm.run(g, f));
  }

  FrameSpec frame() const {
    return {.embedding_scale = std::sqrt(static_cast<float>(hp.n_embd)), .final_softcap = hp.final_softcap};
  }
};

}  // namespace

ArchitectureFactory gemma3_architecture() {
  return ArchitectureOf<Gemma3>::make;
}

}  // namespace hocket
