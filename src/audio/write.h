// audio/write.h: encodes audio as WAV, FLAC or MP3, with tags that tell where it came from.
//
//   TRY_ASSIGN(auto bytes, encode_audio(audio, {.format = AudioFormat::kMp3, .tags = {.comment = request}}, cancel));
//
// Samples beyond ±1 are limited, except in 32-bit float files; NaN and infinities become 0.
//
// Threads  pure functions.
// Errors   kInvalid for an empty clip, a bit rate that MP3 does not have, or a rate that it cannot carry; kCancelled,
//          looked at for every second of MP3; kIo from write_file().
// Cost     linear; the encoded file is held in memory.
// Source   ace-step.md §§12.4, 12.5 (MP3 by LAME, its header frame included: players then know the exact length).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audio/stereo.h"
#include "base/cancel.h"
#include "base/result.h"

namespace hocket {

enum class AudioFormat { kMp3, kWav16, kWav24, kWav32, kFlac };

std::optional<AudioFormat> parse_audio_format(std::string_view name);  // "mp3", "wav16", "wav24", "wav32", "flac"
std::string_view audio_format_name(AudioFormat format);
std::string_view audio_extension(AudioFormat format);   // "mp3", "wav", "flac"
std::string_view audio_media_type(AudioFormat format);  // "audio/mpeg", …

// The constant rates of MPEG-1 Layer III: 32 … 320.
std::span<const int> mp3_bitrates_kbps();

struct AudioTags {
  std::string title;
  std::string comment;   // the request that made it
  std::string software;  // "hocket 0.1.0"
};

struct AudioEncoding {
  AudioFormat format = AudioFormat::kMp3;
  int mp3_bitrate_kbps = 128;
  AudioTags tags{};
};

Result<std::vector<std::byte>> encode_audio(const StereoAudio& audio, const AudioEncoding& encoding,
                                            const CancelToken& cancel);

// Beside `path` first, then renamed: no reader sees half a file.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace hocket
