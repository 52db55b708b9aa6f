// audio/normalise.h: brings audio to full scale.
//
// Threads  pure functions.
// Cost     a copy of the samples and a selection, linear.
// Source   ace-step.md §12.3.
#pragma once

#include "audio/stereo.h"

namespace hocket {

// Scales so that the sample at the percentile reaches 1, and limits to ±1. `peak_clip` in 0…999: millionths of the
// samples that may be limited; 0 is the plain peak. Near silence stays as it is.
void normalise_peak(StereoAudio& audio, int peak_clip);

}  // namespace hocket
