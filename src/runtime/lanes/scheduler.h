// runtime/lanes/scheduler.h: continuous batching: several works in the lanes of one runner, one step at a time.
//
//   if (scheduler.fits(work->demand())) scheduler.add(work);
//   for (Scheduler::Ended& ended : scheduler.turn()) …        // until n_running() is 0
//
// Works come and go between any two steps. Whoever ends gives its lane, cells and sequences back before the next turn.
//
// Owns     its works while they run. Borrows runner and memory.
// Threads  one user at a time.
// Errors   none of its own: those of a work end that work; those of a step end the works that took part in it; a third
//          party's exception counts as kInternal, one for want of memory as kOutOfMemory.
// Cost     a step of the runner, and O(lanes) beside it.
#pragma once

#include <memory>
#include <vector>

#include "runtime/lanes/lane_memory.h"
#include "runtime/lanes/lane_work.h"
#include "runtime/lanes/step_planner.h"

namespace hocket {

class Scheduler {
 public:
  Scheduler(LaneMemory& memory, std::size_t n_lanes);

  // Whether a work with this demand can start now.
  bool fits(const LaneDemand& demand) const;
  // Whether it can start at all.
  bool possible(const LaneDemand& demand) const;
  void add(std::shared_ptr<LaneWork> work);

  struct Ended {
    std::shared_ptr<LaneWork> work;
    Result<void> result;
  };
  // Ends what has to end, runs at most one step, and ends what is done then.
  std::vector<Ended> turn();

  std::size_t n_running() const { return lanes_.size(); }
  std::size_t n_lanes() const { return n_lanes_; }
  // Nobody wanted a step in the last turn: all wait for somebody outside.
  bool stalled() const { return stalled_; }

 private:
  struct Lane {
    uint64_t id;
    std::shared_ptr<LaneWork> work;
    LaneDemand demand;
    bool started = false;
    std::optional<Result<void>> result;  // once it has ended
    // Its part of the present step.
    StepWish wish;
    std::size_t first_token = 0, first_output = 0, n_outputs = 0;
  };
  void ask();
  std::vector<std::size_t> plan();
  Result<void> run(const std::vector<std::size_t>& chosen);
  void distribute(const std::vector<std::size_t>& chosen, double step_ms);
  std::vector<Ended> take_ended();

  LaneMemory* memory_;
  std::size_t n_lanes_;
  StepPlanner planner_;
  std::vector<Lane> lanes_;
  std::vector<BatchToken> batch_;
  uint64_t n_started_ = 0;
  bool stalled_ = true;
};

}  // namespace hocket
