#include "runtime/lanes/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace hocket {
namespace {

template <class Work>
Result<void> guarded(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, "not enough memory for this request");
  } catch (const std::exception& e) {
    return Error(ErrorCode::kInternal, fmt::format("the request ended unexpectedly: {}", e.what()));
  }
}

}  // namespace

Scheduler::Scheduler(LaneMemory& memory, std::size_t n_lanes)
    : memory_(&memory), n_lanes_(n_lanes), planner_(memory.runner().options().n_batch) {
  CHECK(n_lanes > 0);
}

bool Scheduler::possible(const LaneDemand& demand) const {
  const SequenceMemory& memory = memory_->runner().memory();
  return demand.n_cells <= memory.n_cells() && demand.n_sequences <= memory.n_seqs();
}

bool Scheduler::fits(const LaneDemand& demand) const {
  if (lanes_.size() >= n_lanes_) return false;
  LaneDemand all = demand;
  for (const Lane& lane : lanes_) {
    all.n_cells += lane.demand.n_cells;
    all.n_sequences += lane.demand.n_sequences;
  }
  return possible(all);
}

void Scheduler::add(std::shared_ptr<LaneWork> work) {
  CHECK(fits(work->demand()));
  Lane lane;
  lane.id = ++n_started_;
  lane.demand = work->demand();
  lane.work = std::move(work);
  lanes_.push_back(std::move(lane));
}

void Scheduler::ask() {
  for (Lane& lane : lanes_) {
    lane.wish = {};
    const Result<void> asked = guarded([&]() -> Result<void> {
      TRY(lane.work->check());
      if (!std::exchange(lane.started, true)) TRY(lane.work->start());
      TRY_ASSIGN(lane.wish, lane.work->wish());
      return {};
    });
    if (!asked || lane.work->done()) lane.result = asked;
  }
}

std::vector<std::size_t> Scheduler::plan() {
  std::vector<LaneWish> wishes;
  for (const Lane& lane : lanes_)
    wishes.push_back({lane.result ? StepWish() : lane.wish, lane.work->tenant(), lane.id});
  return planner_.choose(wishes);
}

Result<void> Scheduler::run(const std::vector<std::size_t>& chosen) {
  batch_.clear();
  std::size_t n_outputs = 0;
  StepOutput output = StepOutput::kLogits;
  for (const std::size_t i : chosen) {
    Lane& lane = lanes_[i];
    lane.first_token = batch_.size();
    lane.first_output = n_outputs;
    lane.work->add_to(batch_);
    CHECK(batch_.size() == lane.first_token + lane.wish.n_tokens);
    const auto wanted = std::count_if(batch_.begin() + static_cast<std::ptrdiff_t>(lane.first_token), batch_.end(),
                                      [](const BatchToken& token) { return token.output; });
    lane.n_outputs = static_cast<std::size_t>(wanted);
    n_outputs += lane.n_outputs;
    if (lane.wish.output != StepOutput::kLogits) output = lane.wish.output;
  }
  memory_->make_room(batch_.size());
  // A step that others share goes on without the one that was cancelled.
  const CancelToken cancel = chosen.size() == 1 ? lanes_[chosen.front()].work->cancel() : CancelToken();
  return memory_->runner().step(batch_, output, cancel);
}

void Scheduler::distribute(const std::vector<std::size_t>& chosen, double step_ms) {
  const StepFacts facts{step_ms, chosen.size() > 1};
  const auto each = [&](auto&& what) {
    for (const std::size_t i : chosen) {
      Lane& lane = lanes_[i];
      if (lane.result) continue;
      if (Result<void> result = guarded([&] { return what(lane); }); !result) lane.result = std::move(result);
    }
  };
  each([&](Lane& lane) {
    return lane.work->take(
        StepRows(memory_->runner(), lane.first_token, lane.wish.n_tokens, lane.first_output, lane.n_outputs), facts);
  });
  each([](Lane& lane) { return lane.work->settle(); });
  for (const std::size_t i : chosen)
    if (!lanes_[i].result && lanes_[i].work->done()) lanes_[i].result = Result<void>();
}

std::vector<Scheduler::Ended> Scheduler::take_ended() {
  std::vector<Ended> ended;
  std::vector<Lane> running;
  for (Lane& lane : lanes_) {
    if (!lane.result) {
      running.push_back(std::move(lane));
      continue;
    }
    planner_.forget(lane.id);
    Result<void> stopped = guarded([&]() -> Result<void> {
      lane.work->stop();
      return {};
    });
    ended.push_back({std::move(lane.work), lane.result->ok() ? std::move(stopped) : std::move(*lane.result)});
  }
  lanes_ = std::move(running);
  return ended;
}

std::vector<Scheduler::Ended> Scheduler::turn() {
  ask();
  const std::vector<std::size_t> chosen = plan();
  stalled_ = chosen.empty();
  if (!chosen.empty()) {
    const auto start = Clock::now();
    if (const Result<void> ran = guarded([&] { return run(chosen); }); ran) {
      distribute(chosen, ms_since(start));
    } else {
      for (const std::size_t i : chosen) lanes_[i].result = ran;
    }
  }
  return take_ended();
}

}  // namespace hocket
