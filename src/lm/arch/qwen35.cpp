// qwen35, qwen35moe, qwen3next: Qwen 3.5 and Qwen3-Next.
//
// Gated delta nets, and gated attention with rope over part of each head in every full_attention_interval-th layer;
// dense or experts with a gated shared one. qwen3next groups the value heads of a key head, qwen35 tiles them. The
// sections of Qwen 3.5's rope are all the same position in text. NextN block: gated attention. Source:
// language-models.md §3.5.
#include <fmt/format.h>

#include "lm/arch/registry.h"
#include "lm/blocks/gated_attention.h"
#include "lm/blocks/gated_delta_net.h"
#include "lm/blocks/mixed_block.h"

namespace hocket {

namespace {

template <DeltaHeads kHeads>
struct Qwen35 {
  using Layer = MixedBlock<GatedDeltaNet, GatedAttention>;
  HParams hp;
  GatedDeltaNetSpec delta;
  FeedForwardSpec ffn;
  std::vector<bool> recurrent;  // per block

  static Result<Qwen35> read(const HParams& hp, const Metadata& metadata) {
    Qwen35 arch{hp, {}, {}, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    TRY_ASSIGN(arch.delta, GatedDeltaNetSpec::read(hp, metadata, kHeads));
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.norm = true, .gated_shared = true}));
    TRY_ASSIGN(arch.recurrent, read_recurrent(hp, metadata));
    for (std::size_t il = 0; il < arch.recurrent.size(); ++il)
      if (!arch.recurrent[il] && (hp.n_head[il] < 1 || hp.n_kv_head[il] < 1))
        return Error(ErrorCode::kBadModel, fmt::format("block {} attends and has no heads", il),
                     hp.key("attention.head_count_kv"));
    if (hp.head_dim_k != hp.head_dim_v)
      return Error(ErrorCode::kBadModel, "keys and values must have the same size in this family",
                   hp.key("attention.value_length"));
    return arch;
  }

  static Result<std::vector<bool>> read_recurrent(const HParams& hp, const Metadata& metadata) {
    const auto n_block = static_cast<std::size_t>(hp.n_block);
    std::vector<bool> recurrent(n_block, false);
    const std::string key = hp.key("attention.recurrent_layers");
    if (metadata.has(key)) {
      TRY_ASSIGN(const std::vector<bool>* list, metadata.booleans(key));
      if (list->size() < static_cast<std::size_t>(hp.n_layer))
        return Error(ErrorCode::kBadModel,
                     fmt::format("{} has {} entries for {} layers", key, list->size(), hp.n_layer), key);
      for (std::size_t il = 0; il < static_cast<std::size_t>(hp.n_layer); ++il) recurrent[il] = (*list)[il];
      return recurrent;
    }
    TRY_ASSIGN(const int64_t interval, metadata.integer_or(hp.key("full_attention_interval"), 4, 1, 4096));
    // NextN blocks attend.
    for (std::size_t il = 0; il < static_cast<std::size_t>(hp.n_layer); ++il)
      recurrent[il] = (il + 1) % static_cast<std::size_t>(interval) != 0;
    return recurrent;
  }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    const auto mixer = [&]() -> typename Layer::Mixer {
      if (recurrent[il]) return GatedDeltaNet::make(w, p, delta);
      return GatedAttention::make(w, p, AttentionSpec::of(hp, il));
    };
    return Layer::make(w, p, hp, mixer(), FeedForward::make(w, p, ffn, il), "post_attention_norm");
  }

  LayerMemory memory_of(std::size_t il) const {
    if (recurrent[il]) return {.recurrent = delta.memory()};
    return {.kv = {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v}};
  }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const { return l.run(g, il, x); }
};

}  // namespace

ArchitectureFactory qwen35_architecture() {
  return ArchitectureOf<Qwen35<DeltaHeads::kTiled>>::make;
}

ArchitectureFactory qwen3next_architecture() {
  return ArchitectureOf<Qwen35<DeltaHeads::kGrouped>>::make;
}

}  // namespace hocket
