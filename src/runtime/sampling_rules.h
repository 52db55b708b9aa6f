// runtime/sampling_rules.h: the rules of the chain that need no history, each as one function.
//
// Definitions and sources: docs/sampling.md. A value that means "off" (said at each function) changes nothing.
//
// Threads  pure functions of their arguments.
// Cost     O(n) unless stated; n is the present number of candidates.
#pragma once

#include <cstddef>

#include "runtime/candidate_set.h"

namespace hocket {

void apply_top_n_sigma(CandidateSet& set, float n);                        // off: n ≤ 0
void apply_top_k(CandidateSet& set, int k);                                // off: k ≤ 0
void apply_typical(CandidateSet& set, float p, std::size_t min_keep);      // off: p ≥ 1
void apply_top_p(CandidateSet& set, float p, std::size_t min_keep);        // off: p ≥ 1
void apply_min_p(CandidateSet& set, float p, std::size_t min_keep);        // off: p ≤ 0
void apply_xtc(CandidateSet& set, float threshold, std::size_t min_keep);  // the coin has been thrown; off: > 0.5
void apply_temperature(CandidateSet& set, float temperature);              // ≤ 0: only the most probable stays
void apply_dynamic_temperature(CandidateSet& set, float temperature, float range, float exponent);

}  // namespace hocket
