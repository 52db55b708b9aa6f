// runtime/lanes/sequence_pool.h: which sequences of a memory are free.
//
// Owns     the list of free ones. A Sequence is a sequence in use, and empties and returns it at its end.
// Threads  one user at a time.
// Cost     take() constant; giving back clears the sequence, O(cells).
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "memory/sequence_memory.h"

namespace hocket {

class SequencePool;

class Sequence {
 public:
  Sequence() = default;
  Sequence(SequencePool& pool, SeqId id) : pool_(&pool), id_(id) {}
  Sequence(Sequence&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  Sequence& operator=(Sequence&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Sequence();

  SeqId id() const { return id_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  SequencePool* pool_ = nullptr;
  SeqId id_ = -1;
};

class SequencePool {
 public:
  // All sequences of the memory, which are empty.
  explicit SequencePool(SequenceMemory& memory);

  std::optional<Sequence> take();
  std::size_t n_free() const { return free_.size(); }
  SequenceMemory& memory() { return *memory_; }

 private:
  friend class Sequence;
  void give_back(SeqId id);

  SequenceMemory* memory_;
  std::vector<SeqId> free_;  // the last one is taken next
};

}  // namespace hocket
