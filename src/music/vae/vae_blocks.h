// music/vae/vae_blocks.h: what the blocks of encoder and decoder are alike in.
//
// Errors   kBadModel naming the tensor.
// Source   ace-step.md §2.5.
#pragma once

#include <vector>

#include "music/vae/residual_unit.h"
#include "weights/gguf.h"

namespace hocket {

inline constexpr int kMusicRateHz = 48'000;
inline constexpr int64_t kAudioChannels = 2;
inline constexpr std::size_t kMostVaeBlocks = 16;
inline constexpr std::size_t kVaeMaxNodes = 8192;

// Samples that a block's resampling kernel steps over: half its length, which must be even.
Result<int64_t> resampling_stride(const TensorInfo& kernel);

// The units of a block, `prefix`res_unit1 and so on.
std::vector<ResidualUnit> residual_units(DerivedWeights& weights, const std::string& prefix, int64_t n_channels);

}  // namespace hocket
