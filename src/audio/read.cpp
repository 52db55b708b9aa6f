#include "audio/read.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace hocket {
namespace {

constexpr int kMinRateHz = 1'000;
constexpr int kMaxRateHz = 768'000;
constexpr int kMaxChannels = 64;
constexpr sf_count_t kBlockFrames = 16'384;

// libsndfile's view of bytes in memory.
struct MemoryFile {
  std::span<const std::byte> bytes;
  sf_count_t position = 0;

  static MemoryFile& of(void* user) { return *static_cast<MemoryFile*>(user); }
  static sf_count_t length(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).position; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    MemoryFile& file = of(user);
    const sf_count_t size = length(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : size;
    // A damaged header may ask for any offset.
    if (offset > size - base || offset < -base) return -1;
    return file.position = base + offset;
  }
  static sf_count_t read(void* out, sf_count_t n, void* user) {
    MemoryFile& file = of(user);
    n = std::clamp<sf_count_t>(n, 0, length(user) - file.position);
    if (n > 0) std::memcpy(out, file.bytes.data() + file.position, static_cast<std::size_t>(n));
    file.position += n;
    return n;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
};

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

}  // namespace

Result<StereoAudio> read_audio(std::span<const std::byte> bytes, std::string_view name, const AudioLimits& limits) {
  const auto refuse = [&](std::string why) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: {}", name, why), std::string(name));
  };
  if (bytes.empty()) return refuse("the audio is empty");
  if (bytes.size() > limits.max_file_bytes)
    return refuse(fmt::format("larger than {} MiB", limits.max_file_bytes >> 20));

  MemoryFile memory{bytes};
  SF_VIRTUAL_IO io{};
  io.get_filelen = MemoryFile::length;
  io.seek = MemoryFile::seek;
  io.read = MemoryFile::read;
  io.write = MemoryFile::write;
  io.tell = MemoryFile::tell;
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, CloseSound> file(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (!file) return refuse(fmt::format("no WAV, FLAC, MP3 or Ogg that can be decoded ({})", sf_strerror(nullptr)));
  if (info.channels < 1 || info.channels > kMaxChannels)
    return refuse(fmt::format("{} channels; 1 to {} can be read", info.channels, kMaxChannels));
  if (info.samplerate < kMinRateHz || info.samplerate > kMaxRateHz)
    return refuse(fmt::format("a rate of {} Hz; {} to {} can be read", info.samplerate, kMinRateHz, kMaxRateHz));

  StereoAudio audio;
  audio.rate_hz = info.samplerate;
  const auto max_samples = static_cast<std::size_t>(limits.max_seconds * info.samplerate);
  const auto n_channels = static_cast<std::size_t>(info.channels);
  const std::size_t second = n_channels > 1 ? 1 : 0;
  std::vector<float> block(static_cast<std::size_t>(kBlockFrames) * n_channels);
  for (;;) {
    const sf_count_t n = sf_readf_float(file.get(), block.data(), kBlockFrames);
    if (n <= 0) break;
    if (audio.left.size() + static_cast<std::size_t>(n) > max_samples) {
      Error error = refuse(fmt::format("longer than {:g} seconds", limits.max_seconds));
      error.reason = "too_long";
      return error;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const float* frame = block.data() + i * n_channels;
      if (!std::isfinite(frame[0]) || !std::isfinite(frame[second])) return refuse("contains NaN or infinite samples");
      audio.left.push_back(frame[0]);
      audio.right.push_back(frame[second]);
    }
  }
  if (audio.left.empty()) return refuse("no samples could be decoded");
  return audio;
}

Result<StereoAudio> read_audio_file(const std::string& path, const AudioLimits& limits) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return Error(ErrorCode::kNotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno)), path);
  std::vector<std::byte> bytes;
  std::vector<std::byte> block(1u << 20);
  while (bytes.size() <= limits.max_file_bytes) {
    const std::size_t n = std::fread(block.data(), 1, block.size(), file.get());
    bytes.insert(bytes.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < block.size()) break;
  }
  if (std::ferror(file.get())) return Error(ErrorCode::kIo, fmt::format("cannot read {}", path), path);
  return read_audio(bytes, path, limits);
}

}  // namespace hocket
