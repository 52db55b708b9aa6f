#include "engine/sampling_defaults.h"

#include <fmt/format.h>

#include <optional>

namespace hocket {
namespace {

Result<void> read_number(const Metadata& metadata, const char* key, float& target) {
  TRY_ASSIGN(const double value, metadata.number_or(key, target));
  target = static_cast<float>(value);
  return {};
}

Result<void> read_integer(const Metadata& metadata, const char* key, int min, int& target) {
  TRY_ASSIGN(const int64_t value, metadata.integer_or(key, target, min, 1 << 30));
  target = static_cast<int>(value);
  return {};
}

template <class T>
void take(T& target, const std::optional<T>& wish) {
  if (wish) target = *wish;
}

Error invalid(std::string message, std::string field) {
  return Error(ErrorCode::kInvalid, std::move(message), std::move(field));
}

}  // namespace

Result<SamplingParams> model_sampling(const Metadata& metadata, SamplingParams built_in) {
  SamplingParams params = std::move(built_in);
  TRY(read_integer(metadata, "general.sampling.top_k", -1, params.top_k));
  TRY(read_number(metadata, "general.sampling.top_p", params.top_p));
  TRY(read_number(metadata, "general.sampling.min_p", params.min_p));
  TRY(read_number(metadata, "general.sampling.xtc_probability", params.xtc_probability));
  TRY(read_number(metadata, "general.sampling.xtc_threshold", params.xtc_threshold));
  TRY(read_number(metadata, "general.sampling.temp", params.temperature));
  TRY(read_integer(metadata, "general.sampling.penalty_last_n", -1, params.penalty_last_n));
  TRY(read_number(metadata, "general.sampling.penalty_repeat", params.repeat_penalty));
  TRY(read_integer(metadata, "general.sampling.mirostat", 0, params.mirostat));
  TRY(read_number(metadata, "general.sampling.mirostat_tau", params.mirostat_tau));
  TRY(read_number(metadata, "general.sampling.mirostat_eta", params.mirostat_eta));
  return params;
}

SamplingParams apply_params(SamplingParams base, const GenerationParams& params) {
  take(base.seed, params.seed);
  take(base.temperature, params.temperature);
  take(base.dynatemp_range, params.dynatemp_range);
  take(base.dynatemp_exponent, params.dynatemp_exponent);
  take(base.top_k, params.top_k);
  take(base.top_p, params.top_p);
  take(base.min_p, params.min_p);
  take(base.typical_p, params.typical_p);
  take(base.top_n_sigma, params.top_n_sigma);
  take(base.xtc_probability, params.xtc_probability);
  take(base.xtc_threshold, params.xtc_threshold);
  take(base.repeat_penalty, params.repeat_penalty);
  take(base.frequency_penalty, params.frequency_penalty);
  take(base.presence_penalty, params.presence_penalty);
  take(base.penalty_last_n, params.repeat_last_n);
  take(base.dry_multiplier, params.dry_multiplier);
  take(base.dry_base, params.dry_base);
  take(base.dry_allowed_length, params.dry_allowed_length);
  take(base.dry_penalty_last_n, params.dry_penalty_last_n);
  take(base.dry_sequence_breakers, params.dry_sequence_breakers);
  take(base.mirostat, params.mirostat);
  take(base.mirostat_tau, params.mirostat_tau);
  take(base.mirostat_eta, params.mirostat_eta);
  take(base.min_keep, params.min_keep);
  take(base.samplers, params.samplers);
  if (params.ignore_eos) base.ignore_eos = true;
  if (!params.logit_bias.empty()) base.logit_bias = params.logit_bias;
  return base;
}

Result<void> check_ranges(const GenerationParams& params) {
  return check_sampling_ranges(apply_params({}, params));
}

Result<void> check_generation(const GenerationParams& params, const GenerationLimits& limits,
                              const Tokenizer& tokenizer) {
  if (params.n < 1 || params.n > limits.max_n) {
    return invalid(fmt::format("n must be between 1 and {}, not {}", limits.max_n, params.n), "n");
  }
  if (params.max_tokens && *params.max_tokens < 0) return invalid("max_tokens must not be negative", "max_tokens");
  if (params.stop.size() > limits.max_stops) {
    return invalid(fmt::format("at most {} stop strings are accepted, not {}", limits.max_stops, params.stop.size()),
                   "stop");
  }
  for (const std::string& stop : params.stop) {
    if (stop.size() > limits.max_stop_bytes) {
      return invalid(fmt::format("a stop string may have at most {} bytes", limits.max_stop_bytes), "stop");
    }
  }
  if (params.top_logprobs < 0 || params.top_logprobs > limits.max_top_logprobs) {
    return invalid(fmt::format("top_logprobs must be between 0 and {}", limits.max_top_logprobs), "top_logprobs");
  }
  if (params.top_logprobs > 0 && !params.logprobs) return invalid("top_logprobs needs logprobs", "top_logprobs");
  if (params.logit_bias.size() > limits.max_logit_bias) {
    return invalid(fmt::format("at most {} logit_bias entries are accepted", limits.max_logit_bias), "logit_bias");
  }
  for (const LogitBias& bias : params.logit_bias) {
    if (!tokenizer.valid_id(bias.id)) {
      return invalid(
          fmt::format("logit_bias names token {}, but the vocabulary has ids 0…{}", bias.id, tokenizer.size() - 1),
          "logit_bias");
    }
  }
  return {};
}

}  // namespace hocket
