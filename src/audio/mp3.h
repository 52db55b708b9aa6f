// audio/mp3.h: writes MP3 at a constant bit rate.
//
// Threads  pure functions.
// Errors   kInvalid with param "mp3_bitrate" or for a rate that MPEG-1 does not have; kCancelled; kInternal from LAME.
#pragma once

#include <cstddef>
#include <vector>

#include "audio/stereo.h"
#include "audio/write.h"
#include "base/cancel.h"
#include "base/result.h"

namespace hocket {

Result<std::vector<std::byte>> encode_mp3(const StereoAudio& audio, int bitrate_kbps, const AudioTags& tags,
                                          const CancelToken& cancel);

}  // namespace hocket
