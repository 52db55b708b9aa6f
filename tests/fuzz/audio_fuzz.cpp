// Any bytes at all are either a clean error or audio within the limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/read.h"
#include "audio/resample.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, std::size_t n) {
  using namespace hocket;
  constexpr double kMostSeconds = 2;
  const auto audio = read_audio(std::as_bytes(std::span(bytes, n)), "audio", {.max_seconds = kMostSeconds});
  if (!audio.ok()) {
    CHECK(audio.error().code == ErrorCode::kInvalid && audio.error().param == "audio");
    return 0;
  }
  CHECK(audio->n_samples() > 0 && audio->left.size() == audio->right.size());
  CHECK(audio->seconds() <= kMostSeconds);
  const auto resampled = resample(*audio, 48'000);
  CHECK(resampled.ok());
  return 0;
}
