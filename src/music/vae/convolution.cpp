#include "music/vae/convolution.h"

#include <algorithm>
#include <cmath>

namespace hocket {
namespace {

// w = g · v / ‖v‖ for each index of the slowest dimension of v.
void fuse_weight_norm(const std::vector<float>& g, std::vector<float>& v) {
  const std::size_t n = v.size() / g.size();
  for (std::size_t d = 0; d < g.size(); ++d) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(v[d * n + i]) * v[d * n + i];
    const double factor = g[d] / (std::sqrt(sum) + 1e-12);
    for (std::size_t i = 0; i < n; ++i) v[d * n + i] = static_cast<float>(v[d * n + i] * factor);
  }
}

// A weight [a, b, c] in another order of its dimensions: element (i, j, k) goes to at(i, j, k).
template <class At>
DerivedWeights::Derive rearranged(int64_t a, int64_t b, int64_t c, At at) {
  return [=](const DerivedWeights::Sources& sources) {
    std::vector<float> v = sources[1], out(sources[1].size());
    fuse_weight_norm(sources[0], v);
    std::size_t from = 0;
    for (int64_t k = 0; k < c; ++k)
      for (int64_t j = 0; j < b; ++j)
        for (int64_t i = 0; i < a; ++i) out[static_cast<std::size_t>(at(i, j, k))] = v[from++];
    return out;
  };
}

std::vector<DerivedWeights::Source> normed(const std::string& name, int64_t a, int64_t b, int64_t c) {
  return {{name + ".weight_g", {1, 1, c}}, {name + ".weight_v", {a, b, c}}};
}

Tensor bias_of(DerivedWeights& weights, const std::string& name, int64_t n) {
  return weights.declare({n}, {{name + ".bias", {n}}}, [](const DerivedWeights::Sources& s) { return s[0]; });
}

// Columns [first, first + n) of x.
Tensor columns(ggml_context* c, Tensor x, int64_t first, int64_t n) {
  return ggml_view_2d(c, x, x->ne[0], n, x->nb[1], static_cast<std::size_t>(first) * x->nb[1]);
}

// Matrix i of a stack.
Tensor slice(ggml_context* c, Tensor weight, int64_t i) {
  return ggml_view_2d(c, weight, weight->ne[0], weight->ne[1], weight->nb[1],
                      static_cast<std::size_t>(i) * weight->nb[2]);
}

Tensor padded(ggml_context* c, Tensor x, int64_t before, int64_t after) {
  return ggml_pad_ext(c, x, 0, 0, static_cast<int>(before), static_cast<int>(after), 0, 0, 0, 0);
}

}  // namespace

Convolution Convolution::make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                              int64_t kernel, bool with_bias) {
  Convolution conv;
  conv.weight_ = weights.declare({n_in, n_out, kernel}, normed(name, kernel, n_in, n_out),
                                 rearranged(kernel, n_in, n_out, [=](int64_t tap, int64_t in, int64_t out) {
                                   return (tap * n_out + out) * n_in + in;
                                 }));
  if (with_bias) conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor Convolution::run(NetworkGraph& g, Tensor x, int64_t dilation) const {
  ggml_context* c = g.context();
  const int64_t n_taps = weight_->ne[2], n = x->ne[1], pad = dilation * (n_taps / 2);
  Tensor source = pad > 0 ? padded(c, x, pad, pad) : x;
  Tensor sum = nullptr;
  for (int64_t tap = 0; tap < n_taps; ++tap) {
    Tensor y = matmul(g.graph(), slice(c, weight_, tap), columns(c, source, tap * dilation, n));
    sum = sum ? ggml_add(c, sum, y) : y;
  }
  return bias_ ? ggml_add(c, sum, bias_) : sum;
}

DownConvolution DownConvolution::make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                                      int64_t stride) {
  DownConvolution conv;
  conv.stride_ = stride;
  conv.weight_ = weights.declare({n_in * stride, n_out, 2}, normed(name, 2 * stride, n_in, n_out),
                                 rearranged(2 * stride, n_in, n_out, [=](int64_t tap, int64_t in, int64_t out) {
                                   return ((tap / stride * n_out + out) * stride + tap % stride) * n_in + in;
                                 }));
  conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor DownConvolution::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  const int64_t n_in = x->ne[0], n = x->ne[1] / stride_, pad = stride_ / 2;
  // Blocks of `stride` samples; a result sees its own block and the next one.
  const int64_t needed = (n + 1) * stride_, after = std::max<int64_t>(0, needed - pad - x->ne[1]);
  Tensor blocks = ggml_reshape_2d(c, columns(c, padded(c, x, pad, after), 0, needed), n_in * stride_, n + 1);
  Tensor y = ggml_add(c, matmul(g.graph(), slice(c, weight_, 0), columns(c, blocks, 0, n)),
                      matmul(g.graph(), slice(c, weight_, 1), columns(c, blocks, 1, n)));
  return ggml_add(c, y, bias_);
}

UpConvolution UpConvolution::make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                                  int64_t stride) {
  UpConvolution conv;
  conv.stride_ = stride;
  conv.weight_ = weights.declare({n_in, n_out * stride, 2}, normed(name, 2 * stride, n_out, n_in),
                                 rearranged(2 * stride, n_out, n_in, [=](int64_t tap, int64_t out, int64_t in) {
                                   return (tap * n_out + out) * n_in + in;
                                 }));
  conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor UpConvolution::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  const int64_t n = x->ne[1], n_out = weight_->ne[1] / stride_;
  // Block j of the uncropped result: first half of the kernel on x[j], second half on x[j − 1].
  Tensor source = padded(c, x, 1, 1);
  Tensor y = ggml_add(c, matmul(g.graph(), slice(c, weight_, 0), columns(c, source, 1, n + 1)),
                      matmul(g.graph(), slice(c, weight_, 1), columns(c, source, 0, n + 1)));
  y = ggml_reshape_2d(c, y, n_out, stride_ * (n + 1));
  return ggml_add(c, columns(c, y, stride_ / 2, n * stride_), bias_);
}

}  // namespace hocket
