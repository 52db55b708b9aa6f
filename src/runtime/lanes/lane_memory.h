// runtime/lanes/lane_memory.h: what works share: the runner, its sequences, what is remembered of earlier prompts, and
// sources of drafts.
//
// Owns     sequences, remembered prompts, sources. Borrows the runner.
// Threads  one user at a time.
// Errors   take_sequence(): kBusy when works hold all of them.
// Cost     make_room() counts cells, O(cells).
#pragma once

#include <memory>

#include "base/result.h"
#include "lm/runner.h"
#include "runtime/lanes/prefix_cache.h"
#include "runtime/lanes/sequence_pool.h"
#include "runtime/speculative/draft_pool.h"

namespace hocket {

struct LaneMemoryOptions {
  std::size_t n_chunk = 128;    // most tokens of a prompt in a step; at most the runner's n_batch
  PrefixCacheOptions prefixes;  // rules.n_chunk and rules.exact are set by LaneMemory
};

class LaneMemory {
 public:
  // Without sources one token a step is generated.
  LaneMemory(LmRunner& runner, const LaneMemoryOptions& options, DraftPool drafts = {});

  LmRunner& runner() { return *runner_; }
  PrefixCache& prefixes() { return prefixes_; }
  const PrefixCache& prefixes() const { return prefixes_; }
  DraftPool& drafts() { return drafts_; }
  std::size_t n_chunk() const { return n_chunk_; }

  // An empty sequence. Remembered prompts make way.
  Result<Sequence> take_sequence();
  // The same for the cells of a step. What works were promised is always there.
  void make_room(std::size_t n_cells);

 private:
  LmRunner* runner_;
  std::size_t n_chunk_;
  SequencePool sequences_;
  PrefixCache prefixes_;
  DraftPool drafts_;
};

}  // namespace hocket
