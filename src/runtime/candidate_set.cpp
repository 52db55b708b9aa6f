#include "runtime/candidate_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hocket {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kHeapLimit = 4096;  // beyond, a partition of the whole row is cheaper than a heap

// Independent lanes: a single running maximum could not be vectorised without reordering.
float block_max(const float* values, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, kExcluded);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
  }
  for (; i < n; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

}  // namespace

void select_top(std::span<const float> row, std::size_t k, std::vector<Candidate>& out) {
  out.clear();
  if (k == 0) return;
  if (k > kHeapLimit) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] > kExcluded) out.push_back({static_cast<TokenId>(i), row[i], 0});
    }
    if (k < out.size()) {
      std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(k), out.end(), better);
      out.resize(k);
    }
    std::sort(out.begin(), out.end(), better);
    return;
  }
  // A heap whose front is the worst of the k best so far. Ids ascend, so an equal value never displaces it.
  float bar = kExcluded;
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, row.size() - begin);
    if (!(block_max(row.data() + begin, n) > bar)) continue;
    for (std::size_t i = begin; i < begin + n; ++i) {
      if (!(row[i] > bar)) continue;
      const Candidate candidate{static_cast<TokenId>(i), row[i], 0};
      if (out.size() == k) {
        std::pop_heap(out.begin(), out.end(), better);
        out.back() = candidate;
      } else {
        out.push_back(candidate);
      }
      std::push_heap(out.begin(), out.end(), better);
      if (out.size() == k) bar = out.front().logit;
    }
  }
  std::sort_heap(out.begin(), out.end(), better);
}

Result<void> CandidateSet::start(std::span<const float> logits) {
  row_.resize(logits.size());
  bool good = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    good &= logits[i] <= std::numeric_limits<float>::max();  // false for NaN and +infinity
    row_[i] = logits[i];
  }
  if (!good) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!(logits[i] <= std::numeric_limits<float>::max()))
        return Error(ErrorCode::kInternal, fmt::format("the logit of token {} is {}", i, logits[i]), "logits");
    }
  }
  is_row_ = true;
  has_p_ = false;
  n_sorted_ = 0;
  list_.clear();
  return {};
}

void CandidateSet::exclude(TokenId id) {
  CHECK(is_row_);
  if (id >= 0 && static_cast<std::size_t>(id) < row_.size()) row_[static_cast<std::size_t>(id)] = kExcluded;
}

void CandidateSet::keep_allowed(std::span<const uint32_t> mask) {
  CHECK(is_row_ && mask.size() * 32 >= row_.size());
  for (std::size_t begin = 0; begin < row_.size(); begin += 32) {
    const uint32_t word = mask[begin / 32];
    if (word == ~uint32_t{0}) continue;
    float* values = row_.data() + begin;
    const std::size_t n = std::min<std::size_t>(32, row_.size() - begin);
    if (word == 0) {
      std::fill_n(values, n, kExcluded);
    } else {
      for (std::size_t i = 0; i < n; ++i) values[i] = ((word >> i) & 1) != 0 ? values[i] : kExcluded;
    }
  }
}

std::vector<Candidate>& CandidateSet::list() {
  if (is_row_) {
    list_.clear();
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (row_[i] > kExcluded) list_.push_back({static_cast<TokenId>(i), row_[i], 0});
    }
    is_row_ = false;
    logits_changed();
  }
  return list_;
}

void CandidateSet::logits_changed() {
  std::erase_if(list_, [](const Candidate& c) { return !(c.logit > kExcluded); });
  n_sorted_ = 0;
  has_p_ = false;
}

float CandidateSet::max_logit() {
  if (is_row_) return block_max(row_.data(), row_.size());
  if (list_.empty()) return kExcluded;
  if (n_sorted_ > 0) return list_.front().logit;
  return std::max_element(list_.begin(), list_.end(),
                          [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; })
      ->logit;
}

void CandidateSet::keep_best() {
  if (is_row_) {
    const float best = max_logit();
    list_.clear();
    if (best > kExcluded) {
      const auto at = std::find(row_.begin(), row_.end(), best);
      list_.push_back({static_cast<TokenId>(at - row_.begin()), best, 0});
    }
    is_row_ = false;
  } else if (list_.size() > 1) {
    const Candidate best = *std::min_element(list_.begin(), list_.end(), better);
    list_.assign(1, best);
  }
  n_sorted_ = list_.size();
  has_p_ = false;
}

void CandidateSet::keep_top(std::size_t k) {
  if (is_row_) {
    select_top(row_, k, list_);
    is_row_ = false;
    n_sorted_ = list_.size();
    has_p_ = false;
    return;
  }
  sort_front(k);
  if (k < list_.size()) keep_first(k);
}

void CandidateSet::keep_at_least(float logit, std::size_t min_keep) {
  const auto count = is_row_ ? std::count_if(row_.begin(), row_.end(), [&](float l) { return l >= logit; })
                             : std::count_if(list_.begin(), list_.end(), [&](auto& c) { return c.logit >= logit; });
  if (static_cast<std::size_t>(count) < min_keep) return keep_top(min_keep);
  if (is_row_) {
    list_.clear();
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (row_[i] >= logit && row_[i] > kExcluded) list_.push_back({static_cast<TokenId>(i), row_[i], 0});
    }
    is_row_ = false;
    logits_changed();
  } else if (static_cast<std::size_t>(count) < list_.size()) {
    // What stays keeps its order, so the sorted front stays sorted.
    std::erase_if(list_, [&](const Candidate& c) { return c.logit < logit; });
    n_sorted_ = std::min(n_sorted_, list_.size());
    has_p_ = false;
  }
}

void CandidateSet::keep_first(std::size_t n) {
  CHECK(!is_row_ && n <= list_.size());
  has_p_ = has_p_ && n == list_.size();
  list_.resize(n);
  n_sorted_ = std::min(n_sorted_, n);
}

void CandidateSet::sort_front(std::size_t count) {
  auto& all = list();
  count = std::min(count, all.size());
  if (count <= n_sorted_) return;
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(n_sorted_);
  const auto to = all.begin() + static_cast<std::ptrdiff_t>(count);
  if (to != all.end()) std::nth_element(from, to, all.end(), better);
  std::sort(from, to, better);
  n_sorted_ = count;
}

void CandidateSet::softmax() {
  auto& all = list();
  if (has_p_ || all.empty()) return;
  const float max = max_logit();
  double sum = 0;
  for (Candidate& c : all) {
    c.p = std::exp(c.logit - max);
    sum += c.p;
  }
  const float scale = static_cast<float>(1 / sum);
  for (Candidate& c : all) c.p *= scale;
  has_p_ = true;
}

double CandidateSet::entropy() {
  softmax();
  double entropy = 0;
  for (const Candidate& c : list_) {
    if (c.p > 0) entropy -= static_cast<double>(c.p) * std::log(c.p);
  }
  return entropy;
}

}  // namespace hocket
