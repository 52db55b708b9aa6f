#include "audio/resample.h"

#include <fmt/format.h>
#include <soxr.h>

#include <cstdint>

namespace hocket {

Result<StereoAudio> resample(StereoAudio audio, int rate_hz) {
  if (audio.rate_hz <= 0 || rate_hz <= 0)
    return Error(ErrorCode::kInvalid, fmt::format("cannot resample from {} to {} Hz", audio.rate_hz, rate_hz));
  if (audio.rate_hz == rate_hz) return audio;

  const auto n_out = static_cast<std::size_t>(static_cast<uint64_t>(audio.n_samples()) *
                                              static_cast<uint64_t>(rate_hz) / static_cast<uint64_t>(audio.rate_hz));
  StereoAudio result;
  result.rate_hz = rate_hz;
  result.left.resize(n_out);
  result.right.resize(n_out);
  if (n_out == 0) return result;

  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_S, SOXR_FLOAT32_S);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
  const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
  const float* in[] = {audio.left.data(), audio.right.data()};
  float* out[] = {result.left.data(), result.right.data()};
  std::size_t n_done = 0;
  // Samples that soxr does not give at the end stay zero: at most one.
  const soxr_error_t error = soxr_oneshot(audio.rate_hz, rate_hz, 2, in, audio.n_samples(), nullptr, out, n_out,
                                          &n_done, &io, &quality, &runtime);
  if (error) return Error(ErrorCode::kOutOfMemory, fmt::format("cannot resample: {}", error));
  return result;
}

}  // namespace hocket
