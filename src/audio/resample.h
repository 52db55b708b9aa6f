// audio/resample.h: changes the sample rate (band-limited, linear phase).
//
// Threads  pure functions.
// Errors   kInvalid for rates that are not positive, kOutOfMemory.
// Cost     linear in the longer of input and output.
// Source   soxr's very-high-quality setting.
#pragma once

#include "audio/stereo.h"
#include "base/result.h"

namespace hocket {

// Exactly floor(n · rate_hz / audio.rate_hz) samples; the same samples when the rate is that already.
Result<StereoAudio> resample(StereoAudio audio, int rate_hz);

}  // namespace hocket
