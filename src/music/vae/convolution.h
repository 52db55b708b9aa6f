// music/vae/convolution.h: one-dimensional convolutions over channels-first rows, as sums of products.
//
// A signal is [n_channels, n_samples]: the channels of a sample are neighbours. A tap of a convolution is then a
// product of one matrix with a shifted view, so nothing is unfolded: memory is that of the signal, not kernel times as
// much.
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
  Tensor run(NetworkGraph& g, Tensor x, int64_t dilation = 1) const;

 private:
  Tensor weight_ = nullptr;  // [n_in, n_out, kernel]
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
  int64_t stride_ = 0;
  Tensor weight_ = nullptr;  // [n_in · s, n_out, 2]
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
  int64_t stride_ = 0;
  Tensor weight_ = nullptr;  // [n_in, n_out · s, 2]
  Tensor bias_ = nullptr;
};

}  // namespace hocket
