#include "music/pipelines/context.h"

#include <algorithm>

namespace hocket {
namespace {

std::span<const float> silence_frame(const DitFile& dit, int64_t t) {
  const auto n = static_cast<std::size_t>(dit.config().n_channels);
  return std::span(dit.silence()).subspan(static_cast<std::size_t>(std::min(t, dit.n_silence_frames() - 1)) * n, n);
}

void append_frame(std::vector<float>& context, std::span<const float> frame, float mask) {
  context.insert(context.end(), frame.begin(), frame.end());
  context.insert(context.end(), frame.size(), mask);
}

}  // namespace

std::vector<float> silent_context(const DitFile& dit, int64_t n_frames) {
  std::vector<float> context;
  for (int64_t t = 0; t < n_frames; ++t) append_frame(context, silence_frame(dit, t), 1.0f);
  return context;
}

std::vector<float> code_context(const DitFile& dit, int64_t n_frames, std::span<const float> decoded) {
  const auto n = static_cast<std::size_t>(dit.config().n_channels);
  const auto n_decoded = static_cast<int64_t>(decoded.size() / n);
  std::vector<float> context;
  for (int64_t t = 0; t < n_frames; ++t)
    append_frame(
        context,
        t < n_decoded ? decoded.subspan(static_cast<std::size_t>(t) * n, n) : silence_frame(dit, t - n_decoded), 1.0f);
  return context;
}

std::vector<float> source_context(const DitFile& dit, const SynthPlan& plan, bool hide_region,
                                  std::span<const float> source) {
  const auto n = static_cast<std::size_t>(dit.config().n_channels);
  const auto n_source = static_cast<int64_t>(source.size() / n);
  std::vector<float> context;
  for (int64_t t = 0; t < plan.n_frames; ++t) {
    const bool inside = plan.from_region && t >= plan.region_first && t < plan.region_last;
    const bool silent = t >= n_source || (inside && hide_region);
    append_frame(context, silent ? silence_frame(dit, t) : source.subspan(static_cast<std::size_t>(t) * n, n),
                 !plan.from_region || inside ? 1.0f : 0.0f);
  }
  return context;
}

std::vector<float> pad_latent(const DitFile& dit, std::span<const float> latent, int64_t before, int64_t after) {
  std::vector<float> padded;
  const auto add_silence = [&](int64_t n_frames) {
    for (int64_t t = 0; t < n_frames; ++t) {
      const auto frame = silence_frame(dit, t);
      padded.insert(padded.end(), frame.begin(), frame.end());
    }
  };
  add_silence(before);
  padded.insert(padded.end(), latent.begin(), latent.end());
  add_silence(after);
  return padded;
}

}  // namespace hocket
