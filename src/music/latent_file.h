// music/latent_file.h: latents in files: plain floats, or one byte or half a byte a value.
//
//   plain  little-endian float32, 64 a frame, no header
//   NAC8   "NAC8", u32 frames; a frame: f16 scale, 64 signed bytes; value = byte · scale
//   NAC4   "NAC4", u32 frames; a frame: f16 scale, 32 bytes of two signed halves, the low one first
//
// Threads  pure functions.
// Errors   kInvalid for a size that does not fit, values that are not finite, too many frames.
// Source   ace-step.md §11.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

inline constexpr std::size_t kLatentChannels = 64;
inline constexpr std::size_t kMostLatentFrames = 15'000;

enum class LatentFormat { kFloat, kNac8, kNac4 };

// The format is found by its first bytes. `name` is what messages call it. → [64, n_frames]
Result<std::vector<float>> read_latent(std::span<const std::byte> bytes, std::string_view name);
std::vector<std::byte> write_latent(std::span<const float> latent, LatentFormat format);

}  // namespace hocket
