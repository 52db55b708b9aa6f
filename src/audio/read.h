// audio/read.h: decodes WAV, FLAC, MP3 and Ogg, and whatever else libsndfile knows, from bytes.
//
// Mono becomes two equal channels; of more than two channels the first two count. The rate stays that of the file.
//
// Threads  pure functions.
// Errors   kInvalid for bytes that are no audio, have no samples, hold NaN or infinities, or pass a limit (reason
//          "too_long" for that of time); kNotFound and kIo for files. `param` is the given name.
// Cost     linear; memory is bounded by the limit whatever the file's header says.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "audio/stereo.h"
#include "base/result.h"

namespace hocket {

struct AudioLimits {
  double max_seconds = 600;
  std::size_t max_file_bytes = 256u << 20;
};

// `name` is what messages call the audio: a field or a path.
Result<StereoAudio> read_audio(std::span<const std::byte> bytes, std::string_view name, const AudioLimits& limits = {});
Result<StereoAudio> read_audio_file(const std::string& path, const AudioLimits& limits = {});

}  // namespace hocket
