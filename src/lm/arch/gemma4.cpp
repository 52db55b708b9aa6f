// gemma4: Gemma 4 (text), dense and with experts.
//
// As gemma3, and: head sizes and key heads differ between windowed and full layers; values are normalised without a
// weight and may be the keys' projection; the last layers have no keys of their own and read those of the last two
// layers before them; every layer receives an embedding of its own of each token; experts stand beside the dense
// feed-forward. Source: language-models.md §3.4.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "lm/arch/registry.h"
#include "lm/blocks/mlp.h"
#include "lm/blocks/moe.h"
#include "lm/blocks/norm.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

constexpr std::string_view kLayerInputs = "gemma4 layer inputs";
constexpr int64_t kMaxWidth = 1 << 20;

struct Gemma4 {
  // What differs between windowed and full layers.
  struct Kind {
    int64_t head_dim = 0;
    RopeSpec rope;
  };
  struct Experts {
    Moe moe;
    Tensor router_scale;  // [n_embd]
    RmsNorm pre_norm, post_norm, dense_post_norm;
  };
  struct LayerInput {
    Linear gate, proj;  // [n_embd, n_input], [n_input, n_embd]
    RmsNorm post_norm;
  };
  struct Layer {
    RmsNorm attn_norm;
    Linear q, k, v, output;  // no k and v: another layer's rows; no v: the keys'
    RmsNorm q_norm, k_norm, post_attention_norm;
    RmsNorm ffn_norm;
    GatedMlp ffn;
    std::optional<Experts> experts;
    RmsNorm post_ffw_norm;
    std::optional<LayerInput> input;
    Tensor scale;  // [1] or nullptr
  };
  HParams hp;
  std::vector<bool> windowed;  // per layer
  Kind full, swa;
  int64_t n_shared = 0;  // last layers without keys
  int64_t n_input = 0;   // width of a layer's own embedding, 0: none
  std::optional<MoeSpec> moe;
  RopeFactors factors;           // of full layers
  Tensor input_table = nullptr;  // [n_input · n_layer, n_vocab]
  Linear input_proj;             // [n_embd, n_input · n_layer]
  RmsNorm input_norm;            // [n_input]

  static Result<Gemma4> read(const HParams& hp, const Metadata& metadata) {
    Gemma4 arch;
    arch.hp = hp;
    TRY_ASSIGN(arch.windowed, read_window_pattern(hp, metadata, 1));
    arch.full.head_dim = hp.head_dim_k;
    arch.full.rope = hp.rope;
    arch.full.rope.kind = RopeKind::kNeox;
    TRY_ASSIGN(arch.swa.head_dim, metadata.integer_or(hp.key("attention.key_length_swa"), hp.head_dim_k, 2, kMaxWidth));
    arch.swa.rope = arch.full.rope;
    TRY_ASSIGN(const int64_t n_rot,
               metadata.integer_or(hp.key("rope.dimension_count_swa"), arch.swa.head_dim, 2, arch.swa.head_dim));
    if (n_rot % 2 != 0)
      return Error(ErrorCode::kBadModel, fmt::format("{} is odd", n_rot), hp.key("rope.dimension_count_swa"));
    arch.swa.rope.n_rot = static_cast<int>(n_rot);
    arch.swa.rope.freq_base = hp.rope_base_swa;
    arch.swa.rope.freq_scale = 1.0f;
    TRY_ASSIGN(const int64_t value_swa,
               metadata.integer_or(hp.key("attention.value_length_swa"), arch.swa.head_dim, 1, kMaxWidth));
    if (hp.head_dim_v != hp.head_dim_k || value_swa != arch.swa.head_dim)
      return Error(ErrorCode::kBadModel, "keys and values must have the same size in this family",
                   hp.key("attention.value_length"));
    TRY_ASSIGN(arch.n_input, metadata.integer_or(hp.key("embedding_length_per_layer_input"), 0, 0, kMaxWidth));
    if (arch.n_input * hp.n_layer > kMaxWidth)
      return Error(ErrorCode::kBadModel, "the layers' embeddings are too wide",
                   hp.key("embedding_length_per_layer_input"));
    TRY_ASSIGN(arch.n_shared, metadata.integer_or(hp.key("attention.shared_kv_layers"), 0, 0, hp.n_layer - 1));
    TRY(arch.check_heads());
    if (hp.n_expert > 0) {
      TRY_ASSIGN(arch.moe, MoeSpec::read(hp, metadata, {.norm = true, .activation = Activation::kGelu}));
    }
    return arch;
  }

  Result<void> check_heads() const {
    for (std::size_t il = 0; il < windowed.size(); ++il)
      if (hp.n_head[il] < 1 || hp.n_kv_head[il] < 1)
        return Error(ErrorCode::kBadModel, fmt::format("layer {} has no heads", il), hp.key("attention.head_count_kv"));
    for (std::size_t il = first_shared(); il < windowed.size(); ++il) {
      const int64_t source = source_of(il);
      if (source < 0 || windowed[static_cast<std::size_t>(source)] != windowed[il] ||
          hp.n_head[il] % hp.n_kv_head[static_cast<std::size_t>(source)] != 0)
        return Error(ErrorCode::kBadModel, fmt::format("there is no layer whose keys layer {} could read", il),
                     hp.key("attention.shared_kv_layers"));
    }
    return {};
  }

  std::size_t first_shared() const { return static_cast<std::size_t>(hp.n_layer - n_shared); }
  // The layer whose rows layer il reads.
  int64_t source_of(std::size_t il) const {
    const auto first = static_cast<int64_t>(first_shared());
    return static_cast<int64_t>(il) < first ? static_cast<int64_t>(il) : first - (windowed[il] ? 2 : 1);
  }
  const Kind& kind(std::size_t il) const { return windowed[il] ? swa : full; }

  void make_globals(WeightSet& w) {
    factors.make(w, full.rope);
    if (n_input == 0) return;
    input_table = w.table("per_layer_token_embd.weight", {n_input * hp.n_layer, hp.n_vocab});
    input_proj = Linear::make(w, "per_layer_model_proj", hp.n_embd, n_input * hp.n_layer);
    input_norm = RmsNorm::make(w, "per_layer_proj_norm", n_input, hp.rms_eps);
  }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    const auto norm = [&](const char* name) { return RmsNorm::make(w, p + name, hp.n_embd, hp.rms_eps); };
    const int64_t head_dim = kind(il).head_dim, n_q = hp.n_head[il] * head_dim, n_kv = hp.n_kv_head[il] * head_dim;
    Layer l;
    l.attn_norm = norm("attn_norm");
    l.q = Linear::make(w, p + "attn_q", hp.n_embd, n_q);
    l.q_norm = RmsNorm::make(w, p + "attn_q_norm", head_dim, hp.rms_eps);
    if (il < first_shared()) {
      l.k = Linear::make(w, p + "attn_k", hp.n_embd, n_kv);
      l.k_norm = RmsNorm::make(w, p + "attn_k_norm", head_dim, hp.rms_eps);
      l.v.weight = w.optional_matrix(p + "attn_v.weight", {hp.n_embd, n_kv});
    }
    l.output = Linear::make(w, p + "attn_output", n_q, hp.n_embd);
    l.post_attention_norm = norm("post_attention_norm");
    l.ffn_norm = norm("ffn_norm");
    l.ffn = GatedMlp::make(w, p, {.n_embd = hp.n_embd, .n_ff = hp.n_ff[il], .activation = {Activation::kGelu}});
    l.post_ffw_norm = norm("post_ffw_norm");
    if (moe) {
      MoeSpec spec = *moe;
      if (spec.n_ff == 0) spec.n_ff = hp.n_ff[il];
      l.experts = Experts{Moe::make(w, p, spec), w.vector(p + "ffn_gate_inp.scale", {hp.n_embd}),
                          norm("pre_ffw_norm_2"), norm("post_ffw_norm_2"), norm("post_ffw_norm_1")};
    }
    if (n_input > 0)
      l.input = LayerInput{Linear::make(w, p + "inp_gate", hp.n_embd, n_input),
                           Linear::make(w, p + "proj", n_input, hp.n_embd), norm("post_norm")};
    l.scale = w.optional_vector(p + "layer_output_scale.weight", {1});
    return l;
  }

  KvLayerSpec memory_of(std::size_t il) const {
    if (il >= first_shared()) return {};
    const int64_t head_dim = kind(il).head_dim;
    return {hp.n_kv_head[il], head_dim, head_dim, windowed[il] ? static_cast<std::size_t>(hp.n_swa) : 0};
  }
  // The layers' embeddings do not travel, and rows must stand where they are read.
  bool can_start_at(std::size_t il) const { return n_input == 0 && (n_shared == 0 || il + 2 <= first_shared()); }

  // Every layer's input of each token: (E'[token] · √n + rms(P x / √n_embd)) / √2, [n_input, n_layer, n_tokens].
  void begin(StepGraph& g, Tensor x) const {
    if (n_input == 0) return;
    ggml_context* c = g.context();
    const auto split = [&](Tensor t) { return ggml_reshape_3d(c, t, n_input, hp.n_layer, t->ne[1]); };
    Tensor own = split(rows(g.graph(), input_table, g.tokens()));
    own = ggml_scale(c, own, std::sqrt(static_cast<float>(n_input)));
    Tensor shared = ggml_scale(c, input_proj.run(g, x), 1.0f / std::sqrt(static_cast<float>(hp.n_embd)));
    g.shared(kLayerInputs) = ggml_scale(c, ggml_add(c, own, input_norm.run(g, split(shared))), std::sqrt(0.5f));
  }

  Tensor attend(StepGraph& g, const Layer& l, std::size_t il, Tensor h) const {
    ggml_context* c = g.context();
    const auto heads = [&](Tensor t, int64_t n_head) {
      return ggml_reshape_3d(c, t, kind(il).head_dim, n_head, t->ne[1]);
    };
    Tensor rope_factors = windowed[il] ? nullptr : factors.get(g);
    const RopeSpec& rope = kind(il).rope;
    Tensor q = l.q_norm.run(g, heads(l.q.run(g, g.query_rows(h)), hp.n_head[il]));
    q = g.rope(q, g.query_positions(), rope, rope_factors);
    Tensor k = nullptr, v = nullptr;
    if (l.k.weight) {
      k = heads(l.k.run(g, h), hp.n_kv_head[il]);
      v = ggml_rms_norm(c, l.v.weight ? heads(l.v.run(g, h), hp.n_kv_head[il]) : k, hp.rms_eps);
      k = g.rope(l.k_norm.run(g, k), g.positions(), rope, rope_factors);
    }
    return l.output.run(g, g.attend(static_cast<std::size_t>(source_of(il)), q, k, v, {.scale = 1.0f}));
  }

  Tensor feed_forward(StepGraph& g, const Layer& l, Tensor x) const {
    ggml_context* c = g.context();
    Tensor f = l.ffn.run(g, l.ffn_norm.run(g, x));
    if (l.experts) {
      Tensor routed = ggml_scale(c, ggml_rms_norm(c, x, hp.rms_eps), 1.0f / std::sqrt(static_cast<float>(hp.n_embd)));
      routed = ggml_mul(c, routed, l.experts->router_scale);
      Tensor e = l.experts->moe.run(g, l.experts->pre_norm.run(g, x), routed);
      f = ggml_add(c, l.experts->dense_post_norm.run(g, f), l.experts->post_norm.run(g, e));
    }
    return l.post_ffw_norm.run(g, f);
  }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    ggml_context* c = g.context();
    x = g.residual(x, l.post_attention_norm.run(g, attend(g, l, il, l.attn_norm.run(g, x))));
    x = ggml_add(c, x, feed_forward(g, l, x));
    if (l.input) {
      Tensor all = g.shared(kLayerInputs);
      Tensor mine = ggml_view_2d(c, all, n_input, all->ne[2], all->nb[2], il * all->nb[1]);
      Tensor y = ggml_geglu_split(c, l.input->gate.run(g, x), ggml_cont(c, g.query_rows(mine)));
      x = ggml_add(c, x, l.input->post_norm.run(g, l.input->proj.run(g, y)));
    }
    return l.scale ? ggml_mul(c, x, l.scale) : x;
  }

  FrameSpec frame() const {
    return {.embedding_scale = std::sqrt(static_cast<float>(hp.n_embd)), .final_softcap = hp.final_softcap};
  }
};

}  // namespace

ArchitectureFactory gemma4_architecture() {
  return ArchitectureOf<Gemma4>::make;
}

}  // namespace hocket
