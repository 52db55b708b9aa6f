// runtime/lanes/lane_work.h: what holds a lane: one request while it runs, seen from the scheduler.
//
// Before every step each lane is asked what it could use; some of them are granted it. Their tokens become one batch,
// the step runs, and each gets its own rows:
//
//   start() → { check() → wish() → [ add_to() → the shared step → take() → … all have taken → settle() ] }* → done()
//
// Threads  the scheduler's.
// Errors   an Error of any call ends the work with it; the others go on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "lm/runner.h"
#include "runtime/step_rows.h"

namespace hocket {

// What a work needs at most while it runs. It is reserved when the work starts, so that nothing that has started ever
// stops for want of memory.
struct LaneDemand {
  std::size_t n_cells = 0;
  std::size_t n_sequences = 1;
};

struct StepWish {
  enum class Kind {
    kNothing,  // paused
    kDecode,   // tokens that somebody is reading along with
    kPrefill,  // a chunk of a prompt
  };
  Kind kind = Kind::kNothing;
  std::size_t n_tokens = 0;
  StepOutput output = StepOutput::kLogits;  // kHidden cannot share a step with the others
};

struct StepFacts {
  double step_ms = 0;
  bool shared = false;  // other works had tokens in it
};

class LaneWork {
 public:
  virtual ~LaneWork() = default;

  virtual const std::string& tenant() const = 0;
  virtual LaneDemand demand() const = 0;
  // Stops this work's own steps early; a shared step goes on.
  virtual const CancelToken& cancel() const = 0;
  // Whether it may go on (cancelled, out of time).
  virtual Result<void> check() = 0;

  // Takes what demand() said.
  virtual Result<void> start() = 0;
  // Asked before every step until the wish is granted; it stays the same unless the work was paused or resumed.
  virtual Result<StepWish> wish() = 0;
  // Nothing is left to do. Valid after wish() and settle().
  virtual bool done() const = 0;
  // Appends exactly the tokens of the last wish.
  virtual void add_to(std::vector<BatchToken>& batch) = 0;
  virtual Result<void> take(const StepRows& rows, const StepFacts& facts) = 0;
  // After every work of the step has taken its rows: further steps of its own are allowed.
  virtual Result<void> settle() { return {}; }
  // Gives everything back; nothing is called afterwards.
  virtual void stop() = 0;
};

}  // namespace hocket
