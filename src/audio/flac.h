// audio/flac.h: writes FLAC, 24 bits.
//
// Threads  pure functions.
// Errors   kInvalid for a rate that FLAC refuses; kInternal from libsndfile.
#pragma once

#include <cstddef>
#include <vector>

#include "audio/stereo.h"
#include "audio/write.h"
#include "base/result.h"

namespace hocket {

Result<std::vector<std::byte>> encode_flac(const StereoAudio& audio, const AudioTags& tags);

}  // namespace hocket
