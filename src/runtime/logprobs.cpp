#include <cmath>

#include "runtime/candidate_set.h"
#include "runtime/sampling.h"

namespace hocket {

RowLogprobs row_logprobs(std::span<const float> logits, TokenId chosen, std::size_t n_top) {
  std::vector<Candidate> top;
  select_top(logits, std::max<std::size_t>(n_top, 1), top);
  double sum = 0;
  const float max = top.empty() ? kExcluded : top.front().logit;
  for (const float l : logits) {
    // What a double sum would lose anyway is not worth an exponential.
    if (l - max > -40.0f) sum += std::exp(l - max);
  }
  const double log_sum = static_cast<double>(max) + std::log(sum);
  const auto logprob = [&](float logit) { return static_cast<float>(logit - log_sum); };

  RowLogprobs result;
  const bool known = chosen >= 0 && static_cast<std::size_t>(chosen) < logits.size() && !top.empty();
  result.chosen = {chosen, known ? logprob(logits[static_cast<std::size_t>(chosen)]) : kExcluded};
  for (std::size_t i = 0; i < std::min(n_top, top.size()); ++i)
    result.top.push_back({top[i].id, logprob(top[i].logit)});
  return result;
}

}  // namespace hocket
