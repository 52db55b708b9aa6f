// memory/sequence_memory.h: what sequences remember between steps, whatever the layers are made of.
//
// A memory serves up to n_seqs() sequences over a shared pool. Attention layers keep rows of each token, which can be
// cut at any token; recurrent layers keep a state that can only return to a checkpoint. Callers ask traits() and
// can_truncate() and never the architecture.
//
// Owns     device buffers, allocated once at creation.
// Threads  one user at a time (the step thread); traits() from any thread.
// Errors   kBusy when the pool has no room, kInvalid for a snapshot that does not fit. A failed call changes nothing.
// Cost     as said by each method; nothing allocates device memory after creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hocket {

using SeqId = int32_t;

struct MemoryTraits {
  bool cuts_anywhere = true;           // truncate() works at any length that is still remembered, else at checkpoints
  std::size_t n_rollback = 0;          // otherwise: a step of at most so many tokens can be cut at each of them
  std::size_t n_window = 0;            // the shortest window of a layer; 0: none
  std::size_t bytes_per_token = 0;     // all layers
  std::size_t bytes_per_sequence = 0;  // fixed part (recurrent states); also of each checkpoint
  std::size_t device_bytes = 0;        // allocated now

  // Whether a sequence of this length can be cut anywhere after it came back from a snapshot, which holds only what
  // later tokens can see.
  bool snapshot_cuts(std::size_t length) const { return cuts_anywhere && (n_window == 0 || length < n_window); }
  // Whether truncate() will work at every token of a step of n tokens, until the next step.
  bool takes_back(std::size_t n_tokens) const { return cuts_anywhere || n_tokens <= n_rollback; }
};

class SequenceMemory {
 public:
  virtual ~SequenceMemory() = default;

  virtual MemoryTraits traits() const = 0;
  virtual std::size_t n_seqs() const = 0;
  virtual std::size_t n_cells() const = 0;  // tokens that fit, all sequences together
  virtual std::size_t n_free_cells() const = 0;

  // Tokens remembered by a sequence: positions [0, length).
  virtual std::size_t length(SeqId seq) const = 0;
  // Whether truncate(seq, n) would succeed (a sliding window may have dropped what position n needs).
  virtual bool can_truncate(SeqId seq, std::size_t n_tokens) const = 0;
  // Forgets positions ≥ n_tokens. No data moves.
  virtual Result<void> truncate(SeqId seq, std::size_t n_tokens) = 0;
  virtual void clear(SeqId seq) = 0;
  // Makes the present length one that truncate() can return to, where that is not so anyway. Older checkpoints may go.
  virtual void checkpoint(SeqId seq) = 0;
  // target becomes a copy of source; cells are shared, O(cells).
  virtual Result<void> fork(SeqId source, SeqId target) = 0;

  // Everything the sequence remembers, as bytes that only the same model and cache types accept.
  virtual Result<std::vector<std::byte>> snapshot(SeqId seq) const = 0;
  virtual Result<void> restore(SeqId seq, std::span<const std::byte> snapshot) = 0;
};

}  // namespace hocket
