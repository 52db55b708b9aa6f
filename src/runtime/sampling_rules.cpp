#include "runtime/sampling_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hocket {
namespace {

constexpr std::size_t kFirstSorted = 256;

}  // namespace

void apply_top_n_sigma(CandidateSet& set, float n) {
  if (n <= 0) return;
  double sum = 0;
  std::size_t count = 0;
  const auto each = [&set](auto&& visit) {
    if (set.is_row()) {
      for (const float l : set.row()) {
        if (l > kExcluded) visit(static_cast<double>(l));
      }
    } else {
      for (const Candidate& c : set.list()) visit(static_cast<double>(c.logit));
    }
  };
  each([&](double l) {
    sum += l;
    ++count;
  });
  if (count < 2) return;
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  each([&](double l) { squares += (l - mean) * (l - mean); });
  const double sigma = std::sqrt(squares / static_cast<double>(count));
  set.keep_at_least(static_cast<float>(set.max_logit() - n * sigma), 1);
}

void apply_top_k(CandidateSet& set, int k) {
  if (k > 0) set.keep_top(static_cast<std::size_t>(k));
}

void apply_typical(CandidateSet& set, float p, std::size_t min_keep) {
  if (p >= 1) return;
  const float entropy = static_cast<float>(set.entropy());
  std::vector<Candidate>& all = set.list();
  if (all.size() <= 1) return;

  struct Surprise {
    float distance;
    std::size_t index;
  };
  const auto closer = [&](const Surprise& a, const Surprise& b) {
    return a.distance != b.distance ? a.distance < b.distance : better(all[a.index], all[b.index]);
  };
  std::vector<Surprise> order;
  order.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    order.push_back({all[i].p > 0 ? std::abs(-std::log(all[i].p) - entropy) : std::numeric_limits<float>::max(), i});
  }
  double cumulative = 0;
  std::size_t n_sorted = 0, n_kept = 0;
  while (n_kept < order.size()) {
    if (n_kept == n_sorted) {
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(n_sorted);
      n_sorted = std::min(order.size(), std::max(kFirstSorted, 4 * n_sorted));
      const auto to = order.begin() + static_cast<std::ptrdiff_t>(n_sorted);
      if (to != order.end()) std::nth_element(from, to, order.end(), closer);
      std::sort(from, to, closer);
    }
    cumulative += all[order[n_kept++].index].p;
    if (cumulative > p && n_kept >= std::max<std::size_t>(min_keep, 1)) break;
  }
  if (n_kept == order.size()) return;
  std::vector<Candidate> kept;
  kept.reserve(n_kept);
  for (std::size_t i = 0; i < n_kept; ++i) kept.push_back(all[order[i].index]);
  all.swap(kept);
  set.logits_changed();
}

void apply_top_p(CandidateSet& set, float p, std::size_t min_keep) {
  if (p >= 1) return;
  set.softmax();
  const std::vector<Candidate>& all = set.list();
  double cumulative = 0;
  std::size_t n_sorted = 0, n_kept = 0;
  while (n_kept < all.size()) {
    if (n_kept == n_sorted) {
      n_sorted = std::max(kFirstSorted, 4 * n_sorted);
      set.sort_front(n_sorted);
    }
    cumulative += all[n_kept++].p;
    if (cumulative >= p && n_kept >= std::max<std::size_t>(min_keep, 1)) break;
  }
  set.keep_first(n_kept);
}

void apply_min_p(CandidateSet& set, float p, std::size_t min_keep) {
  if (p <= 0) return;
  const float max = set.max_logit();
  if (max > kExcluded) set.keep_at_least(max + std::log(p), std::max<std::size_t>(min_keep, 1));
}

void apply_xtc(CandidateSet& set, float threshold, std::size_t min_keep) {
  if (threshold > 0.5f) return;
  set.softmax();
  std::vector<Candidate>& all = set.list();
  std::size_t n_above = 0;
  const Candidate* least = nullptr;
  for (const Candidate& c : all) {
    if (c.p < threshold) continue;
    ++n_above;
    if (!least || better(*least, c)) least = &c;
  }
  if (n_above < 2 || all.size() - (n_above - 1) < min_keep) return;
  const TokenId stays = least->id;
  std::erase_if(all, [&](const Candidate& c) { return c.p >= threshold && c.id != stays; });
  set.logits_changed();
}

void apply_temperature(CandidateSet& set, float temperature) {
  if (temperature <= 0) return set.keep_best();
  if (temperature == 1) return;
  if (set.is_row()) {
    for (float& l : set.row()) l /= temperature;
  } else {
    for (Candidate& c : set.list()) c.logit /= temperature;
    set.scaled();
  }
}

void apply_dynamic_temperature(CandidateSet& set, float temperature, float range, float exponent) {
  if (range <= 0) return apply_temperature(set, temperature);
  if (set.size() <= 1) return;
  const float lowest = std::max(0.0f, temperature - range);
  const float highest = temperature + range;
  if (highest <= 0) return set.keep_best();
  const double share = set.entropy() / std::log(static_cast<double>(set.size()));
  const double power = std::pow(std::clamp(share, 0.0, 1.0), static_cast<double>(exponent));
  apply_temperature(set, static_cast<float>(lowest + (highest - lowest) * power));
}

}  // namespace hocket
