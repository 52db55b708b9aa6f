#include "music/blocks/attention.h"

namespace hocket {

AttentionBlock AttentionBlock::make(WeightSet& weights, const std::string& prefix, const LayerSizes& sizes, float eps) {
  AttentionBlock a;
  a.sizes_ = sizes;
  const int64_t n_q = sizes.n_head * sizes.head_dim, n_kv = sizes.n_kv_head * sizes.head_dim;
  a.q_ = Projection::make(weights, prefix + "q_proj", sizes.n_embd, n_q, false);
  a.k_ = Projection::make(weights, prefix + "k_proj", sizes.n_embd, n_kv, false);
  a.v_ = Projection::make(weights, prefix + "v_proj", sizes.n_embd, n_kv, false);
  a.output_ = Projection::make(weights, prefix + "o_proj", n_q, sizes.n_embd, false);
  a.q_norm_ = RmsScale::make(weights, prefix + "q_norm", sizes.head_dim, eps);
  a.k_norm_ = RmsScale::make(weights, prefix + "k_norm", sizes.head_dim, eps);
  return a;
}

Tensor AttentionBlock::heads(NetworkGraph& g, const Projection& projection, Tensor x, int64_t n_head, int64_t n,
                             int64_t n_samples) const {
  return ggml_reshape_4d(g.context(), projection.run(g, x), sizes_.head_dim, n_head, n, n_samples);
}

Tensor AttentionBlock::self(NetworkGraph& g, Tensor h, int64_t n, int64_t n_samples, Tensor positions, float rope_base,
                            const Sight& sight) const {
  const auto rotate = [&](Tensor x) {
    return ggml_rope_ext(g.context(), x, positions, nullptr, static_cast<int>(sizes_.head_dim), GGML_ROPE_TYPE_NEOX, 0,
                         rope_base, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f);
  };
  Tensor q = rotate(q_norm_.run(g, heads(g, q_, h, sizes_.n_head, n, n_samples)));
  Tensor k = rotate(k_norm_.run(g, heads(g, k_, h, sizes_.n_kv_head, n, n_samples)));
  Tensor v = heads(g, v_, h, sizes_.n_kv_head, n, n_samples);
  return output_.run(g, attend(g, q, k, v, sight));
}

Tensor AttentionBlock::cross(NetworkGraph& g, Tensor h, int64_t n, Tensor c, int64_t n_keys, int64_t n_samples,
                             const Sight& sight) const {
  Tensor q = q_norm_.run(g, heads(g, q_, h, sizes_.n_head, n, n_samples));
  Tensor k = k_norm_.run(g, heads(g, k_, c, sizes_.n_kv_head, n_keys, n_samples));
  Tensor v = heads(g, v_, c, sizes_.n_kv_head, n_keys, n_samples);
  return output_.run(g, attend(g, q, k, v, sight));
}

}  // namespace hocket
