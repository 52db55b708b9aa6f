#include "audio/flac.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace hocket {
namespace {

constexpr std::size_t kBlockFrames = 16'384;

struct GrowingFile {
  std::vector<std::byte> bytes;
  sf_count_t position = 0;

  static GrowingFile& of(void* user) { return *static_cast<GrowingFile*>(user); }
  static sf_count_t length(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).position; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    GrowingFile& file = of(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : length(user);
    return file.position = std::max<sf_count_t>(0, base + offset);
  }
  static sf_count_t read(void* out, sf_count_t n, void* user) {
    GrowingFile& file = of(user);
    n = std::clamp<sf_count_t>(length(user) - file.position, 0, n);
    if (n > 0) std::memcpy(out, file.bytes.data() + file.position, static_cast<std::size_t>(n));
    file.position += n;
    return n;
  }
  static sf_count_t write(const void* data, sf_count_t n, void* user) {
    GrowingFile& file = of(user);
    const auto end = static_cast<std::size_t>(file.position + n);
    if (file.bytes.size() < end) file.bytes.resize(end);
    if (n > 0) std::memcpy(file.bytes.data() + file.position, data, static_cast<std::size_t>(n));
    file.position += n;
    return n;
  }
};

void set_tag(SNDFILE* file, int which, const std::string& text) {
  if (!text.empty()) sf_set_string(file, which, text.c_str());
}

}  // namespace

Result<std::vector<std::byte>> encode_flac(const StereoAudio& audio, const AudioTags& tags) {
  GrowingFile memory;
  SF_VIRTUAL_IO io{};
  io.get_filelen = GrowingFile::length;
  io.seek = GrowingFile::seek;
  io.read = GrowingFile::read;
  io.write = GrowingFile::write;
  io.tell = GrowingFile::tell;
  SF_INFO info{};
  info.samplerate = audio.rate_hz;
  info.channels = 2;
  info.format = SF_FORMAT_FLAC | SF_FORMAT_PCM_24;
  if (!sf_format_check(&info))
    return Error(ErrorCode::kInvalid, fmt::format("FLAC cannot have a rate of {} Hz", audio.rate_hz));
  SNDFILE* file = sf_open_virtual(&io, SFM_WRITE, &info, &memory);
  if (!file) return Error(ErrorCode::kInternal, fmt::format("cannot write FLAC: {}", sf_strerror(nullptr)));
  set_tag(file, SF_STR_TITLE, tags.title);
  set_tag(file, SF_STR_COMMENT, tags.comment);
  set_tag(file, SF_STR_SOFTWARE, tags.software);

  bool complete = true;
  std::vector<int> block(2 * kBlockFrames);
  const auto to_24_bits = [](float sample) {
    if (!std::isfinite(sample)) sample = 0;
    // libsndfile takes the upper bits of an int.
    return static_cast<int>(std::lrint(std::clamp(sample, -1.0f, 1.0f) * 8'388'607.0f)) * 256;
  };
  for (std::size_t first = 0; first < audio.n_samples() && complete; first += kBlockFrames) {
    const std::size_t n = std::min(kBlockFrames, audio.n_samples() - first);
    for (std::size_t i = 0; i < n; ++i) {
      block[2 * i] = to_24_bits(audio.left[first + i]);
      block[2 * i + 1] = to_24_bits(audio.right[first + i]);
    }
    complete = sf_writef_int(file, block.data(), static_cast<sf_count_t>(n)) == static_cast<sf_count_t>(n);
  }
  complete &= sf_close(file) == 0;
  if (!complete) return Error(ErrorCode::kInternal, "the FLAC encoder failed");
  return std::move(memory.bytes);
}

}  // namespace hocket
