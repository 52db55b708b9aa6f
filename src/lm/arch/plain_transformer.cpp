#include "lm/arch/plain_transformer.h"

namespace hocket {

PlainTransformer PlainTransformer::of(const HParams& hp, RopeKind rope) {
  PlainTransformer arch;
  arch.hp = hp;
  arch.hp.rope.kind = rope;
  arch.attn = AttentionSpec::of(arch.hp, 0);
  return arch;
}

PreNormBlock PlainTransformer::make_layer(WeightSet& w, std::size_t il) const {
  const std::string p = block_prefix(il);
  AttentionSpec spec = attn;
  spec.n_head = hp.n_head[il];
  spec.n_kv_head = hp.n_kv_head[il];
  if (windowed_rope && is_windowed(il)) spec.rope = *windowed_rope;
  if (!unrotated.empty() && unrotated[il]) spec.rope.kind = RopeKind::kNone;
  return PreNormBlock::make(w, p, spec, FeedForward::make(w, p, ffn, il), style);
}

KvLayerSpec PlainTransformer::memory_of(std::size_t il) const {
  return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, is_windowed(il) ? static_cast<std::size_t>(hp.n_swa) : 0};
}

}  // namespace hocket
