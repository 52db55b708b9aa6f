// music/vae/convolution.h: one-dimensional convolutions over channels-first rows, as sums of products.
//
// A signal is [n_channels, n_samples]: the channels of a sample are neighbours. With code of our own a convolution is
// one operation (compute/convolutions.h); elsewhere each tap is a product of one matrix with a shifted view. Nothing is
// unfolded either way: memory is that of the signal, not kernel times as much.
//
// Threads  const.
// Source   ace-step.md N-40 to N-42.
#pragma once

#include <string>

#include "music/blocks/network_graph.h"
#include "music/vae/derived_weights.h"

namespace hocket {

// y[o, t] = b[o] + Σ w[o, i, k] · x[i, t + k · dilation − pad], as long as x.
class Convolution {
 public:
  // Takes `name`.weight_g, `name`.weight_v [kernel, n_in, n_out] (kernel odd) and, when asked, `name`.bias.
  static Convolution make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out, int64_t kernel,
                          bool with_bias);
  // `added` [n_out, n] or nullptr is added to the result.
  Tensor run(NetworkGraph& g, Tensor x, int64_t dilation = 1, Tensor added = nullptr) const;

 private:
  const KernelTable* kernels_ = nullptr;
  int64_t n_in_ = 0, n_out_ = 0, n_taps_ = 0;
  Tensor weight_ = nullptr;  // [n_in, n_out, kernel], or packed
  Tensor bias_ = nullptr;    // [n_out] or nullptr
};

// Stride s (even), kernel 2s, pad s/2: [n_in, n] → [n_out, n / s].
class DownConvolution {
 public:
  // Takes `name`.weight_g, `name`.weight_v [2s, n_in, n_out], `name`.bias.
  static DownConvolution make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                              int64_t stride);
  Tensor run(NetworkGraph& g, Tensor x) const;

 private:
  const KernelTable* kernels_ = nullptr;
  int64_t n_out_ = 0, stride_ = 0;
  Tensor weight_ = nullptr;  // [n_in · s, n_out, 2], or packed
  Tensor bias_ = nullptr;
};

// Transposed: stride s (even), kernel 2s, crop s/2: [n_in, n] → [n_out, n · s].
class UpConvolution {
 public:
  // Takes `name`.weight_g, `name`.weight_v [2s, n_out, n_in], `name`.bias.
  static UpConvolution make(DerivedWeights& weights, const std::string& name, int64_t n_in, int64_t n_out,
                            int64_t stride);
  Tensor run(NetworkGraph& g, Tensor x) const;

 private:
  const KernelTable* kernels_ = nullptr;
  int64_t n_out_ = 0, stride_ = 0;
  Tensor weight_ = nullptr;  // [n_in, n_out · s, 2], or packed
  Tensor bias_ = nullptr;    // [n_out]; with code of our own s times, one after the other
};

}  // namespace hocket
