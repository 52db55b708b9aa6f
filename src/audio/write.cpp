#include "audio/write.h"

#include <array>
#include <cstdio>
#include <memory>

#include "audio/flac.h"
#include "audio/mp3.h"
#include "audio/wav.h"
#include "base/system_error.h"

namespace hocket {
namespace {

struct FormatRow {
  AudioFormat format;
  std::string_view name, extension, media_type;
};
constexpr std::array<FormatRow, 5> kFormats{{
    {AudioFormat::kMp3, "mp3", "mp3", "audio/mpeg"},
    {AudioFormat::kWav16, "wav16", "wav", "audio/wav"},
    {AudioFormat::kWav24, "wav24", "wav", "audio/wav"},
    {AudioFormat::kWav32, "wav32", "wav", "audio/wav"},
    {AudioFormat::kFlac, "flac", "flac", "audio/flac"},
}};

const FormatRow& row_of(AudioFormat format) {
  for (const FormatRow& row : kFormats)
    if (row.format == format) return row;
  return kFormats.front();
}

}  // namespace

std::optional<AudioFormat> parse_audio_format(std::string_view name) {
  for (const FormatRow& row : kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

std::string_view audio_format_name(AudioFormat format) {
  return row_of(format).name;
}

std::string_view audio_extension(AudioFormat format) {
  return row_of(format).extension;
}

std::string_view audio_media_type(AudioFormat format) {
  return row_of(format).media_type;
}

Result<std::vector<std::byte>> encode_audio(const StereoAudio& audio, const AudioEncoding& encoding,
                                            const CancelToken& cancel) {
  if (audio.left.empty() || audio.left.size() != audio.right.size())
    return Error(ErrorCode::kInvalid, "there is no audio to encode");
  switch (encoding.format) {
    case AudioFormat::kMp3:
      return encode_mp3(audio, encoding.mp3_bitrate_kbps, encoding.tags, cancel);
    case AudioFormat::kFlac:
      return encode_flac(audio, encoding.tags);
    case AudioFormat::kWav16:
      return encode_wav(audio, WavSample::kInt16, encoding.tags);
    case AudioFormat::kWav24:
      return encode_wav(audio, WavSample::kInt24, encoding.tags);
    case AudioFormat::kWav32:
      return encode_wav(audio, WavSample::kFloat32, encoding.tags);
  }
  return Error(ErrorCode::kInternal, "unknown audio format");
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::string part = path + ".part";
  const auto failed = [&](const char* what) {
    Error error = system_error(what, path);
    std::remove(part.c_str());
    return error;
  };
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (!file) return failed("create");
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) return failed("write");
  if (std::rename(part.c_str(), path.c_str()) != 0) return failed("rename");
  return {};
}

}  // namespace hocket
