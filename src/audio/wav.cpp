#include "audio/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace hocket {
namespace {

constexpr uint16_t kTagInteger = 1, kTagFloat = 3;
constexpr uint32_t kChannels = 2;

class Bytes {
 public:
  void text(std::string_view s) {
    for (const char c : s) out.push_back(static_cast<std::byte>(c));
  }
  void number(uint32_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  std::vector<std::byte> out;
};

void put_sample(Bytes& bytes, float value, WavSample sample) {
  if (!std::isfinite(value)) value = 0;
  switch (sample) {
    case WavSample::kInt16:
      return bytes.number(static_cast<uint32_t>(static_cast<int32_t>(std::clamp(value, -1.0f, 1.0f) * 32'767.0f)), 2);
    case WavSample::kInt24:
      return bytes.number(static_cast<uint32_t>(static_cast<int32_t>(std::clamp(value, -1.0f, 1.0f) * 8'388'607.0f)),
                          3);
    case WavSample::kFloat32:
      return bytes.number(std::bit_cast<uint32_t>(value), 4);
  }
}

// "ICMT" and so on: NUL-terminated, padded to an even length.
void put_info(Bytes& bytes, std::string_view id, std::string_view text) {
  if (text.empty()) return;
  bytes.text(id);
  bytes.number(static_cast<uint32_t>(text.size() + 1), 4);
  bytes.text(text);
  bytes.number(0, text.size() % 2 == 0 ? 2 : 1);
}

std::vector<std::byte> info_chunk(const AudioTags& tags) {
  Bytes items;
  put_info(items, "INAM", tags.title);
  put_info(items, "ICMT", tags.comment);
  put_info(items, "ISFT", tags.software);
  if (items.out.empty()) return {};
  Bytes chunk;
  chunk.text("LIST");
  chunk.number(static_cast<uint32_t>(items.out.size() + 4), 4);
  chunk.text("INFO");
  chunk.out.insert(chunk.out.end(), items.out.begin(), items.out.end());
  return chunk.out;
}

}  // namespace

Result<std::vector<std::byte>> encode_wav(const StereoAudio& audio, WavSample sample, const AudioTags& tags) {
  const uint32_t sample_bytes = sample == WavSample::kInt16 ? 2 : sample == WavSample::kInt24 ? 3 : 4;
  const std::vector<std::byte> info = info_chunk(tags);
  const uint64_t data_bytes = static_cast<uint64_t>(audio.n_samples()) * kChannels * sample_bytes;
  const uint64_t riff_bytes = 36 + data_bytes + info.size();
  if (riff_bytes > std::numeric_limits<uint32_t>::max())
    return Error(ErrorCode::kInvalid, "the audio is too long for a WAV file");

  Bytes bytes;
  bytes.out.reserve(static_cast<std::size_t>(riff_bytes) + 8);
  bytes.text("RIFF");
  bytes.number(static_cast<uint32_t>(riff_bytes), 4);
  bytes.text("WAVEfmt ");
  bytes.number(16, 4);
  bytes.number(sample == WavSample::kFloat32 ? kTagFloat : kTagInteger, 2);
  bytes.number(kChannels, 2);
  bytes.number(static_cast<uint32_t>(audio.rate_hz), 4);
  bytes.number(static_cast<uint32_t>(audio.rate_hz) * kChannels * sample_bytes, 4);
  bytes.number(kChannels * sample_bytes, 2);
  bytes.number(8 * sample_bytes, 2);
  bytes.text("data");
  bytes.number(static_cast<uint32_t>(data_bytes), 4);
  for (std::size_t i = 0; i < audio.n_samples(); ++i) {
    put_sample(bytes, audio.left[i], sample);
    put_sample(bytes, audio.right[i], sample);
  }
  bytes.out.insert(bytes.out.end(), info.begin(), info.end());
  return std::move(bytes.out);
}

}  // namespace hocket
