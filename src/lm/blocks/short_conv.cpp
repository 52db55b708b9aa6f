#include "lm/blocks/short_conv.h"

namespace hocket {

std::vector<Tensor> run_convs(StepGraph& g, std::size_t layer, const LaneGroup& group,
                              const std::vector<ShortConv>& convs, const std::vector<Tensor>& inputs) {
  ggml_context* c = g.context();
  Tensor before = g.conv_before(layer, group);  // [n_conv, n_lanes]
  std::vector<Tensor> outputs, windows;
  int64_t first = 0;
  for (std::size_t i = 0; i < convs.size(); ++i) {
    const int64_t n_channels = inputs[i]->ne[0];
    const int64_t kernel = convs[i].kernel->ne[0], n_kept = kernel - 1;
    Tensor weights = ggml_reshape_2d(c, convs[i].kernel, kernel, n_channels);
    const auto kept_bytes = static_cast<std::size_t>(n_kept) * sizeof(float);
    Tensor kept = ggml_view_3d(c, before, n_kept, n_channels, group.n_lanes, kept_bytes, before->nb[1],
                               static_cast<std::size_t>(first) * sizeof(float));
    // [K − 1 + n, C, n_lanes]: the past and then this step, time first.
    Tensor window = ggml_concat(c, kept, ggml_transpose(c, inputs[i]), 0);
    outputs.push_back(ggml_ssm_conv(c, window, weights));
    windows.push_back(window);
    first += n_kept * n_channels;
  }
  // The last K − 1 inputs before each state that the step leaves.
  Tensor after = nullptr;
  for (int64_t back = 0; back < group.n_written; ++back) {
    Tensor row = nullptr;
    for (Tensor window : windows) {
      const int64_t n_kept = window->ne[0] - group.n_tokens;
      Tensor kept = ggml_view_3d(c, window, n_kept, window->ne[1], group.n_lanes, window->nb[1], window->nb[2],
                                 static_cast<std::size_t>(group.n_tokens - back) * sizeof(float));
      kept = ggml_reshape_2d(c, ggml_cont(c, kept), n_kept * window->ne[1], group.n_lanes);
      row = row ? ggml_concat(c, row, kept, 0) : kept;
    }
    after = after ? ggml_concat(c, after, row, 1) : row;
  }
  g.set_conv(layer, group, after);
  return outputs;
}

}  // namespace hocket
