// runtime/candidate_set.h: the tokens that may still be drawn, while the rules of the chain thin them out.
//
// Begins as a row (logit of every id; −infinity: out) and becomes a list as soon as a rule has made it short, so that
// the whole vocabulary is never sorted. Of equal logits the smaller id comes first, everywhere.
//
// Owns     the row, the list, scratch; memory is kept from call to call.
// Threads  one user at a time.
// Errors   start(): kInternal naming the first id whose logit is NaN or +infinity.
// Cost     stated at each function; n is the present number of candidates, V the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/sampling.h"

namespace hocket {

inline constexpr float kExcluded = -std::numeric_limits<float>::infinity();

class CandidateSet {
 public:
  Result<void> start(std::span<const float> logits);  // O(V)

  // The row form, for changes by id; only while is_row().
  bool is_row() const { return is_row_; }
  std::span<float> row() { return row_; }
  void exclude(TokenId id);                           // only while is_row()
  void keep_allowed(std::span<const uint32_t> mask);  // only while is_row(); bit set: stays. O(V)

  // Applies change(logit, value) to each candidate that `values` (a map from id) has.
  template <class Map, class Change>
  void change(const Map& values, Change change);

  // The list form; makes it from the row when needed, in O(V). Whoever changes logits calls logits_changed().
  std::vector<Candidate>& list();
  std::size_t size() { return list().size(); }
  void logits_changed();
  void scaled() { has_p_ = false; }  // every logit times the same positive factor: the order stands

  float max_logit();             // −infinity when empty
  void keep_best();              // only the largest; O(n)
  void keep_top(std::size_t k);  // the k largest, sorted; O(n) for small k
  void keep_at_least(float logit, std::size_t min_keep);
  void keep_first(std::size_t n);  // of the list, after sort_front()
  // Makes the first min(count, n) of the list its largest, in descending order. Calls with growing counts share work.
  void sort_front(std::size_t count);
  void softmax();    // fills p; O(n) exponentials, nothing when p is still right
  double entropy();  // of p, in nats

 private:
  std::vector<float> row_;
  std::vector<Candidate> list_;
  std::size_t n_sorted_ = 0;  // leading elements of list_ that are in their final order
  bool is_row_ = true;
  bool has_p_ = false;
};

inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The k largest values of a row, in descending order, into `out` (p is not set); −infinity and NaN never count.
// One comparison of a block's maximum with the present k-th value skips most of the row.
void select_top(std::span<const float> row, std::size_t k, std::vector<Candidate>& out);

template <class Map, class Change>
void CandidateSet::change(const Map& values, Change change) {
  if (is_row_) {
    for (const auto& [id, value] : values) {
      const auto index = static_cast<std::size_t>(id);
      if (id >= 0 && index < row_.size()) row_[index] = change(row_[index], value);
    }
    return;
  }
  for (Candidate& candidate : list_) {
    if (const auto found = values.find(candidate.id); found != values.end())
      candidate.logit = change(candidate.logit, found->second);
  }
  logits_changed();
}

}  // namespace hocket
