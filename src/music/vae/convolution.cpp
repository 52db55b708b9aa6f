#include "music/vae/convolution.h"

#include <algorithm>
#include <cmath>

#include "compute/convolutions.h"

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

// The same for our own code; `at(v, out, tap, in)` picks the weight of each place.
template <class At>
DerivedWeights::Derive packed(int64_t n_in, int64_t n_out, int64_t n_taps, At at) {
  return [=](const DerivedWeights::Sources& sources) {
    std::vector<float> v = sources[1];
    fuse_weight_norm(sources[0], v);
    return packed_convolution(n_in, n_out, n_taps, [&](int64_t out, int64_t tap, int64_t in) {
      return v[static_cast<std::size_t>(at(out, tap, in))];
    });
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
  conv.kernels_ = weights.own_kernels();
  conv.n_in_ = n_in;
  conv.n_out_ = n_out;
  conv.n_taps_ = kernel;
  if (conv.kernels_) {
    conv.weight_ = weights.declare({packed_convolution_size(n_in, n_out, kernel)}, normed(name, kernel, n_in, n_out),
                                   packed(n_in, n_out, kernel, [=](int64_t out, int64_t tap, int64_t in) {
                                     return (out * n_in + in) * kernel + tap;
                                   }));
  } else {
    conv.weight_ = weights.declare({n_in, n_out, kernel}, normed(name, kernel, n_in, n_out),
                                   rearranged(kernel, n_in, n_out, [=](int64_t tap, int64_t in, int64_t out) {
                                     return (tap * n_out + out) * n_in + in;
                                   }));
  }
  if (with_bias) conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor Convolution::run(NetworkGraph& g, Tensor x, int64_t dilation, Tensor added) const {
  ggml_context* c = g.context();
  const int64_t n = x->ne[1], pad = dilation * (n_taps_ / 2);
  if (kernels_)
    return g.convolutions().convolve(c, *kernels_, {n_in_, n_out_, n_taps_, dilation, -pad, n}, weight_, x, bias_,
                                     added);
  Tensor source = pad > 0 ? padded(c, x, pad, pad) : x;
  Tensor sum = added;
  for (int64_t tap = 0; tap < n_taps_; ++tap) {
    Tensor y = matmul(g.graph(), slice(c, weight_, tap), columns(c, source, tap * dilation, n));
    sum = sum ? ggml_add(c, sum, y) : y;
  }
  return bias_ ? ggml_add(c, sum, bias_) : sum;
}

DownConvolution DownConvolution::make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                                      int64_t stride) {
  DownConvolution conv;
  conv.kernels_ = weights.own_kernels();
  conv.n_out_ = n_out;
  conv.stride_ = stride;
  // Input `i` of a block is channel i % n_in of its sample i / n_in.
  if (conv.kernels_) {
    conv.weight_ =
        weights.declare({packed_convolution_size(n_in * stride, n_out, 2)}, normed(name, 2 * stride, n_in, n_out),
                        packed(n_in * stride, n_out, 2, [=](int64_t out, int64_t tap, int64_t i) {
                          return (out * n_in + i % n_in) * 2 * stride + tap * stride + i / n_in;
                        }));
  } else {
    conv.weight_ = weights.declare({n_in * stride, n_out, 2}, normed(name, 2 * stride, n_in, n_out),
                                   rearranged(2 * stride, n_in, n_out, [=](int64_t tap, int64_t in, int64_t out) {
                                     return ((tap / stride * n_out + out) * stride + tap % stride) * n_in + in;
                                   }));
  }
  conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor DownConvolution::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  const int64_t n_in = x->ne[0], n = x->ne[1] / stride_, pad = stride_ / 2;
  // Blocks of `stride` samples; a result sees its own block and the next one.
  const int64_t needed = (n + 1) * stride_, after = std::max<int64_t>(0, needed - pad - x->ne[1]);
  Tensor blocks = ggml_reshape_2d(c, columns(c, padded(c, x, pad, after), 0, needed), n_in * stride_, n + 1);
  if (kernels_)
    return g.convolutions().convolve(c, *kernels_, {n_in * stride_, n_out_, 2, 1, 0, n}, weight_, blocks, bias_,
                                     nullptr);
  Tensor y = ggml_add(c, matmul(g.graph(), slice(c, weight_, 0), columns(c, blocks, 0, n)),
                      matmul(g.graph(), slice(c, weight_, 1), columns(c, blocks, 1, n)));
  return ggml_add(c, y, bias_);
}

UpConvolution UpConvolution::make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                                  int64_t stride) {
  UpConvolution conv;
  conv.kernels_ = weights.own_kernels();
  conv.n_out_ = n_out;
  conv.stride_ = stride;
  if (conv.kernels_) {
    // Output `row` of a block is channel row % n_out of its sample row / n_out; the first tap is on the column before.
    conv.weight_ =
        weights.declare({packed_convolution_size(n_in, n_out * stride, 2)}, normed(name, 2 * stride, n_out, n_in),
                        packed(n_in, n_out * stride, 2, [=](int64_t row, int64_t tap, int64_t in) {
                          return (in * n_out + row % n_out) * 2 * stride + (1 - tap) * stride + row / n_out;
                        }));
    conv.bias_ = weights.declare({n_out * stride}, {{name + ".bias", {n_out}}}, [=](const DerivedWeights::Sources& s) {
      std::vector<float> repeated;
      for (int64_t i = 0; i < stride; ++i) repeated.insert(repeated.end(), s[0].begin(), s[0].end());
      return repeated;
    });
    return conv;
  }
  conv.weight_ = weights.declare({n_in, n_out * stride, 2}, normed(name, 2 * stride, n_out, n_in),
                                 rearranged(2 * stride, n_out, n_in, [=](int64_t tap, int64_t out, int64_t in) {
                                   return (tap * n_out + out) * n_in + in;
                                 }));
  conv.bias_ = bias_of(weights, name, n_out);
  return conv;
}

Tensor UpConvolution::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  const int64_t n = x->ne[1], n_out = n_out_;
  // Block j of the uncropped result: first half of the kernel on x[j], second half on x[j − 1].
  if (kernels_) {
    Tensor blocks = g.convolutions().convolve(c, *kernels_, {x->ne[0], n_out * stride_, 2, 1, -1, n + 1}, weight_, x,
                                              bias_, nullptr);
    return columns(c, ggml_reshape_2d(c, blocks, n_out, stride_ * (n + 1)), stride_ / 2, n * stride_);
  }
  Tensor source = padded(c, x, 1, 1);
  Tensor y = ggml_add(c, matmul(g.graph(), slice(c, weight_, 0), columns(c, source, 1, n + 1)),
                      matmul(g.graph(), slice(c, weight_, 1), columns(c, source, 0, n + 1)));
  y = ggml_reshape_2d(c, y, n_out, stride_ * (n + 1));
  return ggml_add(c, columns(c, y, stride_ / 2, n * stride_), bias_);
}

}  // namespace hocket
