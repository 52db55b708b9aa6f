#include "lm/frame.h"

namespace hocket {

namespace {
constexpr std::string_view kEmbedding = "token_embd.weight";
}

Embedding Embedding::make(WeightSet& weights, const HParams& hp, const FrameSpec& frame, std::string_view name) {
  return {weights.table(name, {hp.n_embd, hp.n_vocab}), frame.embedding_scale};
}

Tensor Embedding::run(StepGraph& g) const {
  Tensor x = rows(g.graph(), table, g.tokens());
  return scale == 1.0f ? x : ggml_scale(g.context(), x, scale);
}

Head Head::make(WeightSet& weights, const HParams& hp, const FrameSpec& frame) {
  Head head;
  head.logit_scale = frame.logit_scale;
  head.softcap = frame.final_softcap;
  if (!frame.tied_head && weights.has("output.weight", {hp.n_embd, hp.n_vocab})) {
    head.output = Linear::make(weights, "output", hp.n_embd, hp.n_vocab, frame.head_bias);
  } else {
    head.output.weight = weights.matrix(kEmbedding, {hp.n_embd, hp.n_vocab});
  }
  return head;
}

Tensor Head::run(StepGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  Tensor logits = output.run(g, x, g.shape().first_logit);
  if (logit_scale != 1.0f) logits = ggml_scale(c, logits, logit_scale);
  if (softcap == 0.0f) return logits;
  return ggml_scale(c, ggml_tanh(c, ggml_scale(c, logits, 1.0f / softcap)), softcap);
}

void finish(StepGraph& g, const RmsNorm& norm, const Head& head, Tensor x) {
  x = norm.run(g, x);
  if (g.shape().output == StepOutput::kHidden) {
    g.set_result(x);
    return;
  }
  if (g.shape().output == StepOutput::kLogitsAndHidden) {
    g.set_hidden(x);
    if (g.output_rows()) x = ggml_get_rows(g.context(), x, g.output_rows());
  }
  g.set_result(head.run(g, x));
}

}  // namespace hocket
