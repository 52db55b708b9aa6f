// lfm2, lfm2moe: LFM2.
//
// Gated short convolutions, and grouped-query attention where attention.head_count_kv is not 0; dense, or experts with
// a sigmoid after some dense layers. The final norm is called token_embd_norm, the head is tied. Source:
// language-models.md §3.16.
#include "lm/arch/registry.h"
#include "lm/blocks/attention.h"
#include "lm/blocks/mixed_block.h"
#include "lm/blocks/short_conv.h"

namespace hocket {

namespace {

constexpr int64_t kMaxKernel = 64;

// y = C ⊙ conv(B ⊙ X), with (B, C, X) = in_proj · h.
struct GatedConv {
  Linear in, out;
  std::vector<ShortConv> conv;

  static GatedConv make(WeightSet& w, const std::string& prefix, int64_t n_embd, int64_t kernel) {
    const std::string p = prefix + "shortconv.";
    return {Linear::make(w, p + "in_proj", n_embd, 3 * n_embd),
            Linear::make(w, p + "out_proj", n_embd, n_embd),
            {ShortConv::make(w, p + "conv.weight", {kernel, n_embd})}};
  }
  // h [n_embd, n_tokens] → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h) const {
    ggml_context* c = g.context();
    Tensor bcx = in.run(g, h);  // [3 · n_embd, n_tokens]
    const auto third = [&](int64_t i) {
      const int64_t n = bcx->ne[0] / 3;
      return ggml_view_2d(c, bcx, n, bcx->ne[1], bcx->nb[1], ggml_row_size(bcx->type, i * n));
    };
    Tensor u = ggml_mul(c, third(0), third(2));
    std::vector<Tensor> parts;
    for (const LaneGroup& group : g.lane_groups())
      parts.push_back(run_convs(g, layer, group, conv, {g.lanes_of(group, u)})[0]);
    Tensor y = ggml_mul(c, g.join_lanes(parts), third(1));
    return out.run(g, g.query_rows(y));
  }
};

struct Lfm2 {
  using Layer = MixedBlock<GatedConv, Attention>;
  HParams hp;
  int64_t kernel;
  FeedForwardSpec ffn;

  static Result<Lfm2> read(const HParams& hp, const Metadata& metadata) {
    Lfm2 arch{hp, 0, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    TRY_ASSIGN(arch.kernel, metadata.integer(hp.key("shortconv.l_cache"), 2, kMaxKernel));
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid, .norm = true}));
    return arch;
  }

  bool attends(std::size_t il) const { return hp.n_kv_head[il] != 0; }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.head_norm = true;
    const auto mixer = [&]() -> Layer::Mixer {
      if (attends(il)) return Attention::make(w, p, attn);
      return GatedConv::make(w, p, hp.n_embd, kernel);
    };
    return Layer::make(w, p, hp, mixer(), FeedForward::make(w, p, ffn, il));
  }

  LayerMemory memory_of(std::size_t il) const {
    if (attends(il)) return {.kv = {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v}};
    return {.recurrent = {.n_conv = conv_state_size(kernel, hp.n_embd)}};
  }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const { return l.run(g, il, x); }

  FrameSpec frame() const { return {.output_norm = "token_embd_norm", .tied_head = true}; }
};

}  // namespace

ArchitectureFactory lfm2_architecture() {
  return ArchitectureOf<Lfm2>::make;
}

}  // namespace hocket
