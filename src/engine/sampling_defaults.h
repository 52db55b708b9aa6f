// engine/sampling_defaults.h: which sampling settings a request really gets.
//
// Request beats server flags beats the model file's general.sampling.* keys beats the built-in values.
//
// Threads  pure functions.
// Errors   model_sampling(): kBadModel with the key. check_generation(): kInvalid with the request field.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "engine/requests.h"
#include "runtime/sampling.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace hocket {

// The author's recommendations in the file, where it has any.
Result<SamplingParams> model_sampling(const Metadata& metadata, SamplingParams built_in = {});

// `base` with everything that `params` sets.
SamplingParams apply_params(SamplingParams base, const GenerationParams& params);

// Whether the sampling settings of `params` are in their ranges: kInvalid with the request field. For settings that
// come before a model is loaded.
Result<void> check_ranges(const GenerationParams& params);

struct GenerationLimits {
  int max_n = 8;
  std::size_t max_stops = 16;
  std::size_t max_stop_bytes = 256;
  int max_top_logprobs = 20;
  std::size_t max_logit_bias = 1024;
};

// What does not belong to the sampler: n, stop, logprobs, logit_bias ids, max_tokens.
Result<void> check_generation(const GenerationParams& params, const GenerationLimits& limits,
                              const Tokenizer& tokenizer);

}  // namespace hocket
