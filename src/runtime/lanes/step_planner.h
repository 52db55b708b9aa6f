// runtime/lanes/step_planner.h: who takes part in the next step.
//
// Tokens of answers come first, one step after the other; the rest of the budget is for prompts. While anybody decodes,
// a step holds at most one prompt chunk, so nobody who reads along waits for more than one; a chunk that does not fit
// beside the decoding takes turns with it. When nobody decodes, chunks of several prompts fill the step. Prompts take
// turns by tenant, then by lane, so a long prompt of one user does not hold up a short one of another.
//
// Threads  one user at a time.
// Cost     a sort of the lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/lanes/lane_work.h"

namespace hocket {

struct LaneWish {
  StepWish wish;
  std::string tenant;
  uint64_t lane = 0;  // unique among all works that ever ran
};

class StepPlanner {
 public:
  explicit StepPlanner(std::size_t n_budget) : n_budget_(n_budget) {}

  // Indices into `wishes`, in batch order. Empty only when nobody wants anything. No wish is larger than the budget.
  std::vector<std::size_t> choose(const std::vector<LaneWish>& wishes);
  // A lane is free again.
  void forget(uint64_t lane) { served_.erase(lane); }

 private:
  std::size_t n_budget_;
  uint64_t turn_ = 0;
  bool chunk_was_last_ = false;              // the last step held a chunk that decoding had to wait for
  std::map<uint64_t, uint64_t> served_;      // lane → turn of its last part in a step
  std::map<std::string, uint64_t> tenants_;  // tenant → turn of its last chunk; of tenants with wishes only
};

}  // namespace hocket
