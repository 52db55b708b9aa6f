#include "lm/nextn.h"

#include "lm/arch/registry.h"
#include "lm/trunk.h"

namespace hocket {

bool NextnBlock::present(const HParams& hp, WeightSet& weights, std::size_t il) {
  return weights.has(block_prefix(il) + "nextn.eh_proj.weight", {2 * hp.n_embd, hp.n_embd});
}

NextnBlock::NextnBlock(Architecture& arch, const HParams& hp, WeightSet& weights, std::size_t il)
    : arch_(arch), il_(il), n_embd_(hp.n_embd) {
  const FrameSpec frame = arch.frame();
  const std::string p = block_prefix(il);
  const Shape table{hp.n_embd, hp.n_vocab};
  const auto norm = [&](const std::string& name) { return RmsNorm::make(weights, name, hp.n_embd, hp.rms_eps); };
  const auto own = [&](std::string_view name, const Shape& shape) {
    return weights.has(p + std::string(name) + ".weight", shape);
  };
  embedding_ = Embedding::make(
      weights, hp, frame, own("nextn.embed_tokens", table) ? p + "nextn.embed_tokens.weight" : "token_embd.weight");
  embedding_norm_ = norm(p + "nextn.enorm");
  hidden_norm_ = norm(p + "nextn.hnorm");
  projection_ = Linear::make(weights, p + "nextn.eh_proj", 2 * hp.n_embd, hp.n_embd);
  arch.make_layer(weights, il);
  head_norm_ =
      norm(own(frame.nextn_norm, {hp.n_embd}) ? p + std::string(frame.nextn_norm) : std::string(frame.output_norm));
  if (own("nextn.shared_head_head", table)) {
    head_.output = Linear::make(weights, p + "nextn.shared_head_head", hp.n_embd, hp.n_vocab);
    head_.logit_scale = frame.logit_scale;
    head_.softcap = frame.final_softcap;
  } else {
    head_ = Head::make(weights, hp, frame);
  }
}

std::size_t NextnBlock::max_nodes(std::size_t n_lane_groups) const {
  return nodes_of(1, n_lane_groups);
}

void NextnBlock::build(StepGraph& g) const {
  Tensor e = embedding_norm_.run(g, embedding_.run(g));
  Tensor h = hidden_norm_.run(g, g.activations());
  Tensor x = projection_.run(g, ggml_concat(g.context(), e, h, 0));  // [n_embd, n_tokens]
  arch_.begin(g, x);
  g.set_trimming(g.shape().output != StepOutput::kLogitsAndHidden);
  finish(g, head_norm_, head_, arch_.run_layer(g, il_, x));
}

}  // namespace hocket
