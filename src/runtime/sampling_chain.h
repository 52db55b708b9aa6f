// runtime/sampling_chain.h: checks settings and turns them into the list of rules that really run.
//
// Threads  pure functions.
// Errors   kInvalid naming the field.
#pragma once

#include <vector>

#include "base/result.h"
#include "runtime/candidate_set.h"
#include "runtime/sampling.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

enum class SamplingStep { kPenalties, kDry, kTopNSigma, kTopK, kTypical, kTopP, kMinP, kXtc, kTemperature };

Result<void> check_sampling(const SamplingParams& params, const Tokenizer& tokenizer);

// params.samplers without what is switched off or cannot change the outcome.
Result<std::vector<SamplingStep>> sampling_steps(const SamplingParams& params);

}  // namespace hocket
