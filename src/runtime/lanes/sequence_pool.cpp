#include "runtime/lanes/sequence_pool.h"

#include "base/check.h"

namespace hocket {

Sequence::~Sequence() {
  if (pool_) pool_->give_back(id_);
}

SequencePool::SequencePool(SequenceMemory& memory) : memory_(&memory) {
  for (std::size_t i = memory.n_seqs(); i > 0; --i) free_.push_back(static_cast<SeqId>(i - 1));
}

std::optional<Sequence> SequencePool::take() {
  if (free_.empty()) return std::nullopt;
  const SeqId id = free_.back();
  free_.pop_back();
  CHECK(memory_->length(id) == 0);
  return Sequence(*this, id);
}

void SequencePool::give_back(SeqId id) {
  memory_->clear(id);
  free_.push_back(id);
}

}  // namespace hocket
