// runtime/mirostat.h: keeps the surprise of the drawn tokens near a target (Basu et al., Mirostat, ICLR 2021).
//
// Version 1 estimates the exponent of a Zipf law from the head of the distribution and cuts at the k that it gives;
// version 2 cuts at the surprise itself.
//
// Threads  one user at a time.
#pragma once

#include <cstddef>

#include "runtime/candidate_set.h"

namespace hocket {

class Mirostat {
 public:
  Mirostat(int version, float tau, float eta) : version_(version), tau_(tau), eta_(eta), mu_(2 * tau) {}

  void truncate(CandidateSet& set, std::size_t vocabulary_size) const;
  // `p`: probability of the token that is used, among the candidates that truncate() left.
  void accept(float p);
  float mu() const { return mu_; }

 private:
  int version_;
  float tau_, eta_, mu_;
};

}  // namespace hocket
