#include "music/blocks/encoder_stack.h"

#include <numeric>

namespace hocket {

Result<LayerSizes> EncoderStack::read_sizes(const GgufFile& file, const std::string& prefix) {
  return LayerSizes::read(file, prefix + "layers.0.", "input_layernorm.weight");
}

EncoderStack EncoderStack::make(WeightSet& weights, const std::string& prefix, std::size_t n_layer,
                                const LayerSizes& sizes, const EncoderNumbers& numbers) {
  EncoderStack stack;
  stack.sizes_ = sizes;
  stack.numbers_ = numbers;
  for (std::size_t il = 0; il < n_layer; ++il) {
    const std::string p = prefix + "layers." + std::to_string(il) + ".";
    stack.layers_.push_back({RmsScale::make(weights, p + "input_layernorm", sizes.n_embd, numbers.eps),
                             RmsScale::make(weights, p + "post_attention_layernorm", sizes.n_embd, numbers.eps),
                             AttentionBlock::make(weights, p + "self_attn.", sizes, numbers.eps),
                             SwigluBlock::make(weights, p + "mlp.", sizes)});
  }
  stack.norm_ = RmsScale::make(weights, prefix + "norm", sizes.n_embd, numbers.eps);
  return stack;
}

Tensor EncoderStack::run(NetworkGraph& g, Tensor x, int64_t n, int64_t n_samples,
                         const std::function<Sight(std::size_t il)>& sight, const std::string& tap) const {
  ggml_context* c = g.context();
  std::vector<int32_t> steps(static_cast<std::size_t>(n));
  std::iota(steps.begin(), steps.end(), 0);
  Tensor positions = g.integers({n}, std::move(steps));
  for (std::size_t il = 0; il < layers_.size(); ++il) {
    const Layer& layer = layers_[il];
    Tensor a =
        layer.attention.self(g, layer.attention_norm.run(g, x), n, n_samples, positions, numbers_.rope_base, sight(il));
    x = ggml_add(c, x, a);
    x = ggml_add(c, x, layer.mlp.run(g, layer.mlp_norm.run(g, x)));
    g.tap(tap + "_layer" + std::to_string(il), x);
  }
  return norm_.run(g, x);
}

std::size_t EncoderStack::max_nodes(int64_t n, int64_t n_samples) const {
  return 64 + layers_.size() * (64 + attend_nodes(n, n, sizes_.n_head, n_samples));
}

}  // namespace hocket
