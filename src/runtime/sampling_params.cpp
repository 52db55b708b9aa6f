#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "runtime/sampling_chain.h"

namespace hocket {
namespace {

constexpr std::size_t kMaxBreakers = 64;
constexpr std::size_t kMaxBreakerBytes = 40;

constexpr std::pair<std::string_view, SamplingStep> kSteps[] = {
    {"penalties", SamplingStep::kPenalties},
    {"dry", SamplingStep::kDry},
    {"top_n_sigma", SamplingStep::kTopNSigma},
    {"top_k", SamplingStep::kTopK},
    {"typ_p", SamplingStep::kTypical},
    {"top_p", SamplingStep::kTopP},
    {"min_p", SamplingStep::kMinP},
    {"xtc", SamplingStep::kXtc},
    {"temperature", SamplingStep::kTemperature},
};

Error invalid(std::string_view field, std::string message) {
  return Error(ErrorCode::kInvalid, std::move(message), std::string(field));
}

Result<void> in_range(std::string_view field, double value, double min, double max) {
  if (value >= min && value <= max) return {};
  if (std::isinf(max)) return invalid(field, fmt::format("{} must be at least {}, not {}", field, min, value));
  return invalid(field, fmt::format("{} must be from {} to {}, not {}", field, min, max, value));
}

Result<void> finite(std::string_view field, double value) {
  if (std::isfinite(value)) return {};
  return invalid(field, fmt::format("{} must be a finite number", field));
}

bool is_active(const SamplingParams& p, SamplingStep step) {
  switch (step) {
    case SamplingStep::kPenalties:
      return p.penalty_last_n != 0 && (p.repeat_penalty != 1 || p.frequency_penalty != 0 || p.presence_penalty != 0);
    case SamplingStep::kDry:
      return p.dry_multiplier > 0 && p.dry_penalty_last_n != 0;
    case SamplingStep::kTopNSigma:
      return p.top_n_sigma > 0;
    case SamplingStep::kTopK:
      return p.top_k > 0;
    case SamplingStep::kTypical:
      return p.typical_p < 1;
    case SamplingStep::kTopP:
      return p.top_p < 1;
    case SamplingStep::kMinP:
      return p.min_p > 0;
    case SamplingStep::kXtc:
      return p.xtc_probability > 0 && p.xtc_threshold <= 0.5f;
    case SamplingStep::kTemperature:
      return p.temperature != 1 || p.dynatemp_range > 0;
  }
  return false;
}

bool keeps_best(SamplingStep step) {
  return step == SamplingStep::kTopNSigma || step == SamplingStep::kTopK || step == SamplingStep::kTopP ||
         step == SamplingStep::kMinP;
}

}  // namespace

Result<void> check_sampling_ranges(const SamplingParams& p) {
  constexpr double kAny = std::numeric_limits<float>::max();
  TRY(finite("temperature", p.temperature));
  TRY(in_range("dynatemp_range", p.dynatemp_range, 0, kAny));
  TRY(in_range("dynatemp_exponent", p.dynatemp_exponent, 0, kAny));
  TRY(in_range("top_p", p.top_p, 0, 1));
  TRY(in_range("min_p", p.min_p, 0, 1));
  TRY(in_range("typical_p", p.typical_p, 0, 1));
  TRY(finite("top_n_sigma", p.top_n_sigma));
  TRY(in_range("xtc_probability", p.xtc_probability, 0, 1));
  TRY(in_range("xtc_threshold", p.xtc_threshold, 0, 1));
  TRY(in_range("repeat_penalty", p.repeat_penalty, std::numeric_limits<float>::min(), kAny));
  TRY(finite("frequency_penalty", p.frequency_penalty));
  TRY(finite("presence_penalty", p.presence_penalty));
  TRY(in_range("repeat_last_n", p.penalty_last_n, -1, INT32_MAX));
  TRY(in_range("dry_multiplier", p.dry_multiplier, 0, kAny));
  TRY(in_range("dry_base", p.dry_base, 1, kAny));
  TRY(in_range("dry_allowed_length", p.dry_allowed_length, 1, INT32_MAX));
  TRY(in_range("dry_penalty_last_n", p.dry_penalty_last_n, -1, INT32_MAX));
  TRY(in_range("mirostat", p.mirostat, 0, 2));
  TRY(in_range("mirostat_tau", p.mirostat_tau, 0, kAny));
  TRY(in_range("mirostat_eta", p.mirostat_eta, 0, kAny));
  return in_range("min_keep", p.min_keep, 0, INT32_MAX);
}

Result<void> check_sampling(const SamplingParams& params, const Tokenizer& tokenizer) {
  TRY(check_sampling_ranges(params));
  for (const LogitBias& bias : params.logit_bias) {
    if (!tokenizer.valid_id(bias.id))
      return invalid("logit_bias", fmt::format("logit_bias: there is no token {}", bias.id));
    if (!std::isfinite(bias.bias) && bias.bias != kExcluded)
      return invalid("logit_bias",
                     fmt::format("logit_bias: the bias of token {} must be finite or -infinity", bias.id));
  }
  if (params.dry_sequence_breakers.size() > kMaxBreakers)
    return invalid("dry_sequence_breakers", fmt::format("at most {} dry_sequence_breakers are allowed", kMaxBreakers));
  for (const std::string& breaker : params.dry_sequence_breakers) {
    if (breaker.empty() || breaker.size() > kMaxBreakerBytes)
      return invalid("dry_sequence_breakers",
                     fmt::format("each of dry_sequence_breakers must have 1 to {} bytes", kMaxBreakerBytes));
  }
  return {};
}

Result<std::vector<SamplingStep>> sampling_steps(const SamplingParams& params) {
  std::vector<SamplingStep> steps;
  std::set<SamplingStep> seen;
  for (const std::string& name : params.samplers) {
    const auto found = std::find_if(std::begin(kSteps), std::end(kSteps), [&](auto& row) { return row.first == name; });
    if (found == std::end(kSteps)) {
      std::string known;
      for (const auto& row : kSteps) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.first);
      return invalid("samplers", fmt::format("samplers: \"{}\" is not known; there are: {}", name, known));
    }
    if (!seen.insert(found->second).second)
      return invalid("samplers", fmt::format("samplers: \"{}\" is given twice", name));
    if (is_active(params, found->second)) steps.push_back(found->second);
  }

  // With temperature 0 only the most probable token counts: rules that never remove it need not run before.
  const auto temperature = std::find(steps.begin(), steps.end(), SamplingStep::kTemperature);
  if (temperature != steps.end() && params.temperature <= 0 && params.dynatemp_range <= 0) {
    auto from = temperature;
    while (from != steps.begin() && keeps_best(*std::prev(from))) --from;
    steps.erase(std::next(temperature), steps.end());
    steps.erase(from, temperature);
  }
  return steps;
}

}  // namespace hocket
