#include "runtime/mirostat.h"

#include <algorithm>
#include <cmath>

namespace hocket {
namespace {

constexpr std::size_t kHead = 100;  // candidates from which the exponent is estimated

std::size_t zipf_cut(CandidateSet& set, float mu, double vocabulary_size) {
  set.sort_front(kHead);
  const std::vector<Candidate>& all = set.list();
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < std::min(kHead, all.size()); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = static_cast<double>(all[i].logit) - all[i + 1].logit;  // ln(p_i / p_{i+1})
    products += t * b;
    squares += t * t;
  }
  if (squares == 0) return all.size();
  const double s = products / squares;
  const double epsilon = s - 1;
  // For ε → 0 the quotient tends to 2^μ / ln V.
  const double power = std::exp2(static_cast<double>(mu));
  const double quotient = std::abs(epsilon) < 1e-9 ? power / std::log(vocabulary_size)
                                                   : epsilon * power / (1 - std::pow(vocabulary_size, -epsilon));
  const double k = std::pow(quotient, 1 / s);
  if (!(k >= 1)) return 1;  // NaN too
  return k >= static_cast<double>(all.size()) ? all.size() : static_cast<std::size_t>(k);
}

}  // namespace

void Mirostat::truncate(CandidateSet& set, std::size_t vocabulary_size) const {
  if (set.size() <= 1) return;
  if (version_ == 1) return set.keep_top(zipf_cut(set, mu_, static_cast<double>(vocabulary_size)));
  set.softmax();
  std::vector<Candidate>& all = set.list();
  const Candidate best = *std::min_element(all.begin(), all.end(), better);
  std::erase_if(all, [&](const Candidate& c) { return c.id != best.id && !(-std::log2(c.p) <= mu_); });
  set.logits_changed();
}

void Mirostat::accept(float p) {
  if (p > 0) mu_ -= eta_ * (-std::log2(p) - tau_);
}

}  // namespace hocket
