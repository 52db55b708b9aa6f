// glm-dsa: GLM-5.
//
// deepseek2 with low-rank queries and sparse attention: an indexer chooses the keys of each query; layers without an
// indexer of their own take the choice of the last one before them. NextN block: dense latent attention, no indexer.
// Source: language-models.md §3.14.
#include <fmt/format.h>

#include <optional>

#include "lm/arch/registry.h"
#include "lm/blocks/feed_forward.h"
#include "lm/blocks/indexer.h"
#include "lm/blocks/mla.h"

namespace hocket {

namespace {

constexpr std::string_view kSelection = "glm-dsa selection";
// Files of this context length and without a list have two indexers at the front and then one in four layers.
constexpr int64_t kLongContext = 1 << 20;

struct GlmDsa {
  struct Layer {
    RmsNorm attn_norm;
    Mla attn;
    std::optional<Indexer> indexer;
    RmsNorm ffn_norm;
    FeedForward ffn;
  };
  HParams hp;
  MlaSpec mla;
  IndexerSpec indexer;
  FeedForwardSpec ffn;
  std::vector<bool> own;  // per layer: has an indexer

  static Result<GlmDsa> read(const HParams& hp, const Metadata& metadata) {
    GlmDsa arch{hp, {}, {}, {}, {}};
    TRY_ASSIGN(arch.mla, MlaSpec::read(hp, metadata));
    TRY_ASSIGN(arch.indexer, IndexerSpec::read(hp, metadata, arch.mla.n_q_latent));
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid}));
    TRY_ASSIGN(arch.own, read_types(hp, metadata));
    return arch;
  }

  static Result<std::vector<bool>> read_types(const HParams& hp, const Metadata& metadata) {
    const auto n_layer = static_cast<std::size_t>(hp.n_layer);
    std::vector<bool> own(n_layer, true);
    const std::string key = hp.key("attention.indexer.types");
    if (metadata.has(key)) {
      TRY_ASSIGN(const std::vector<bool>* list, metadata.booleans(key));
      if (list->size() != n_layer)
        return Error(ErrorCode::kBadModel, fmt::format("{} has {} entries for {} layers", key, list->size(), n_layer),
                     key);
      own.assign(list->begin(), list->end());
    } else if (hp.n_ctx_train >= kLongContext) {
      for (std::size_t il = 2; il < n_layer; ++il) own[il] = (il - 2) % 4 == 0;
    }
    if (!own[0]) return Error(ErrorCode::kBadModel, "the first layer needs an indexer of its own", key);
    return own;
  }

  bool indexes(std::size_t il) const { return il < own.size() && own[il]; }
  bool sparse(std::size_t il) const { return il < own.size(); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    return {RmsNorm::make(w, p + "attn_norm", hp.n_embd, hp.rms_eps), Mla::make(w, p, mla),
            indexes(il) ? std::optional(Indexer::make(w, p, indexer)) : std::nullopt,
            RmsNorm::make(w, p + "ffn_norm", hp.n_embd, hp.rms_eps), FeedForward::make(w, p, ffn, il)};
  }

  KvLayerSpec memory_of(std::size_t il) const {
    KvLayerSpec spec = mla.memory();
    if (indexes(il)) spec.n_index = indexer.head_dim;
    return spec;
  }
  // The choice of an earlier layer does not travel.
  bool can_start_at(std::size_t il) const { return indexes(il); }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    Tensor h = l.attn_norm.run(g, x);
    Tensor latent = l.attn.query_latent(g, g.query_rows(h));
    Tensor& selection = g.shared(kSelection);  // F32 [n_kv, n_queries], nullptr: everything
    if (l.indexer) selection = l.indexer->run(g, il, h, latent);
    Tensor mask = sparse(il) ? selection : nullptr;
    if (mask) {
      if (mask->ne[1] != latent->ne[1]) mask = g.query_rows(mask);
      mask = ggml_cast(g.context(), mask, GGML_TYPE_F16);
    }
    x = g.residual(x, l.attn.run(g, il, h, latent, mask));
    return g.residual(x, l.ffn.run(g, l.ffn_norm.run(g, x)));
  }
};

}  // namespace

ArchitectureFactory glm_dsa_architecture() {
  return ArchitectureOf<GlmDsa>::make;
}

}  // namespace hocket
