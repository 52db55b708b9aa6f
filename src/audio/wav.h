// audio/wav.h: writes RIFF WAVE files: a 44-byte header, the samples and, with tags, a LIST INFO chunk behind them.
//
// Threads  pure functions.
// Errors   kInvalid when the file would pass 4 GiB.
// Source   ace-step.md §12.4: integers are the product with the largest value, truncated.
#pragma once

#include <cstddef>
#include <vector>

#include "audio/stereo.h"
#include "audio/write.h"
#include "base/result.h"

namespace hocket {

enum class WavSample { kInt16, kInt24, kFloat32 };

Result<std::vector<std::byte>> encode_wav(const StereoAudio& audio, WavSample sample, const AudioTags& tags);

}  // namespace hocket
