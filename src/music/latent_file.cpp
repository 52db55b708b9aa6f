#include "music/latent_file.h"

#include <fmt/format.h>
#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"

namespace hocket {
namespace {

constexpr std::size_t kHeaderBytes = 8;

struct Packing {
  std::string_view magic;
  int largest;  // of a stored value
  std::size_t values_a_byte;
  std::size_t frame_bytes() const { return sizeof(ggml_fp16_t) + kLatentChannels / values_a_byte; }
};
constexpr Packing kNac8{"NAC8", 127, 1};
constexpr Packing kNac4{"NAC4", 7, 2};

Result<std::vector<float>> unpack(std::span<const std::byte> bytes, const Packing& packing, std::string_view name) {
  uint32_t n_frames = 0;
  std::memcpy(&n_frames, bytes.data() + 4, sizeof n_frames);
  if (n_frames > kMostLatentFrames || bytes.size() != kHeaderBytes + n_frames * packing.frame_bytes())
    return Error(ErrorCode::kInvalid, fmt::format("{}: {} bytes do not hold {} frames", name, bytes.size(), n_frames),
                 std::string(name));
  std::vector<float> latent;
  for (std::size_t f = 0; f < n_frames; ++f) {
    const std::byte* frame = bytes.data() + kHeaderBytes + f * packing.frame_bytes();
    ggml_fp16_t half = 0;
    std::memcpy(&half, frame, sizeof half);
    const float scale = ggml_fp16_to_fp32(half);
    for (std::size_t c = 0; c < kLatentChannels; ++c) {
      const auto byte = static_cast<uint8_t>(frame[sizeof half + c / packing.values_a_byte]);
      int value = static_cast<int8_t>(byte);
      if (packing.values_a_byte == 2) {
        value = c % 2 == 0 ? byte & 0xF : byte >> 4;
        if (value > 7) value -= 16;
      }
      latent.push_back(static_cast<float>(value) * scale);
    }
  }
  return latent;
}

std::vector<std::byte> pack(std::span<const float> latent, const Packing& packing) {
  std::vector<std::byte> bytes;
  const auto put = [&](const void* data, std::size_t n) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + n);
  };
  const auto n_frames = static_cast<uint32_t>(latent.size() / kLatentChannels);
  put(packing.magic.data(), packing.magic.size());
  put(&n_frames, sizeof n_frames);
  for (std::size_t f = 0; f < n_frames; ++f) {
    const auto frame = latent.subspan(f * kLatentChannels, kLatentChannels);
    float most = 0;
    for (const float value : frame) most = std::max(most, std::abs(value));
    const auto largest = static_cast<float>(packing.largest);
    const ggml_fp16_t scale = ggml_fp32_to_fp16(most / largest);
    put(&scale, sizeof scale);
    const auto stored = [&](float value) {
      if (most == 0) return 0;
      return static_cast<int>(std::clamp(std::round(value * largest / most), -largest, largest));
    };
    for (std::size_t c = 0; c < kLatentChannels; c += packing.values_a_byte) {
      auto byte = static_cast<uint8_t>(stored(frame[c]));
      if (packing.values_a_byte == 2) byte = static_cast<uint8_t>((byte & 0xF) | (stored(frame[c + 1]) & 0xF) << 4);
      put(&byte, 1);
    }
  }
  return bytes;
}

}  // namespace

Result<std::vector<float>> read_latent(std::span<const std::byte> bytes, std::string_view name) {
  const auto refuse = [&](std::string why) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: {}", name, why), std::string(name));
  };
  std::vector<float> latent;
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(4, bytes.size()));
  if (bytes.size() >= kHeaderBytes && (magic == kNac8.magic || magic == kNac4.magic)) {
    TRY_ASSIGN(latent, unpack(bytes, magic == kNac8.magic ? kNac8 : kNac4, name));
  } else {
    constexpr std::size_t kFrameBytes = kLatentChannels * sizeof(float);
    if (bytes.empty() || bytes.size() % kFrameBytes != 0) return refuse("size not a multiple of 64*4 bytes");
    if (bytes.size() / kFrameBytes > kMostLatentFrames)
      return refuse(fmt::format("exceeds max frames ({})", kMostLatentFrames));
    latent.resize(bytes.size() / sizeof(float));
    std::memcpy(latent.data(), bytes.data(), bytes.size());
  }
  if (latent.empty()) return refuse("holds no frames");
  for (const float value : latent)
    if (!std::isfinite(value)) return refuse("contains non-finite values");
  return latent;
}

std::vector<std::byte> write_latent(std::span<const float> latent, LatentFormat format) {
  CHECK(latent.size() % kLatentChannels == 0);
  if (format == LatentFormat::kNac8) return pack(latent, kNac8);
  if (format == LatentFormat::kNac4) return pack(latent, kNac4);
  const auto bytes = std::as_bytes(latent);
  return {bytes.begin(), bytes.end()};
}

}  // namespace hocket
