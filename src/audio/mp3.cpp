#include "audio/mp3.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <lame/lame.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "audio/id3.h"

namespace hocket {
namespace {

constexpr std::array kBitrates{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
constexpr std::array kRatesHz{32'000, 44'100, 48'000};
constexpr int kQuality = 2;  // of 0 (slow) to 9

struct CloseLame {
  void operator()(lame_global_flags* lame) const { lame_close(lame); }
};

void append(std::vector<std::byte>& out, const std::vector<unsigned char>& bytes, int n) {
  for (int i = 0; i < n; ++i) out.push_back(static_cast<std::byte>(bytes[static_cast<std::size_t>(i)]));
}

}  // namespace

std::span<const int> mp3_bitrates_kbps() {
  return kBitrates;
}

Result<std::vector<std::byte>> encode_mp3(const StereoAudio& audio, int bitrate_kbps, const AudioTags& tags,
                                          const CancelToken& cancel) {
  if (std::find(kBitrates.begin(), kBitrates.end(), bitrate_kbps) == kBitrates.end())
    return Error(ErrorCode::kInvalid,
                 fmt::format("mp3_bitrate {}: must be one of {}", bitrate_kbps, fmt::join(kBitrates, ", ")),
                 "mp3_bitrate");
  if (std::find(kRatesHz.begin(), kRatesHz.end(), audio.rate_hz) == kRatesHz.end())
    return Error(ErrorCode::kInvalid, fmt::format("MP3 cannot have a rate of {} Hz", audio.rate_hz));

  const std::unique_ptr<lame_global_flags, CloseLame> lame(lame_init());
  if (!lame) return Error(ErrorCode::kOutOfMemory, "cannot start the MP3 encoder");
  lame_set_in_samplerate(lame.get(), audio.rate_hz);
  lame_set_out_samplerate(lame.get(), audio.rate_hz);
  lame_set_num_channels(lame.get(), 2);
  lame_set_mode(lame.get(), JOINT_STEREO);
  lame_set_VBR(lame.get(), vbr_off);
  lame_set_brate(lame.get(), bitrate_kbps);
  lame_set_quality(lame.get(), kQuality);
  lame_set_bWriteVbrTag(lame.get(), 1);
  lame_set_write_id3tag_automatic(lame.get(), 0);
  if (lame_init_params(lame.get()) < 0) return Error(ErrorCode::kInternal, "the MP3 encoder refused its settings");
  // LAME's settings of a bit rate come with a factor of their own (0.95); what goes in is to come out.
  const float scale = lame_get_scale(lame.get());
  const float gain = scale > 0 ? 1.0f / scale : 1.0f;

  std::vector<std::byte> out = id3_tag(tags);
  const std::size_t header_at = out.size();
  const auto block = static_cast<std::size_t>(audio.rate_hz);
  std::vector<float> left(block), right(block);
  std::vector<unsigned char> bytes(block * 5 / 4 + 7200);  // lame.h: the most that a block can become
  const auto limited = [gain](float sample) {
    return std::isfinite(sample) ? gain * std::clamp(sample, -1.0f, 1.0f) : 0.0f;
  };
  for (std::size_t first = 0; first < audio.n_samples(); first += block) {
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    const std::size_t n = std::min(block, audio.n_samples() - first);
    for (std::size_t i = 0; i < n; ++i) {
      left[i] = limited(audio.left[first + i]);
      right[i] = limited(audio.right[first + i]);
    }
    const int n_bytes = lame_encode_buffer_ieee_float(lame.get(), left.data(), right.data(), static_cast<int>(n),
                                                      bytes.data(), static_cast<int>(bytes.size()));
    if (n_bytes < 0) return Error(ErrorCode::kInternal, fmt::format("the MP3 encoder failed ({})", n_bytes));
    append(out, bytes, n_bytes);
  }
  const int n_bytes = lame_encode_flush(lame.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (n_bytes < 0) return Error(ErrorCode::kInternal, fmt::format("the MP3 encoder failed ({})", n_bytes));
  append(out, bytes, n_bytes);

  // The first frame was reserved for what is known only now: length, delay, padding.
  const std::size_t n_header = lame_get_lametag_frame(lame.get(), bytes.data(), bytes.size());
  if (n_header > 0 && n_header <= bytes.size() && header_at + n_header <= out.size())
    for (std::size_t i = 0; i < n_header; ++i) out[header_at + i] = static_cast<std::byte>(bytes[i]);
  return out;
}

}  // namespace hocket
