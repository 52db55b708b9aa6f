#include "tokenizer/grammar_cache.h"

namespace hocket {

std::optional<xgrammar::CompiledGrammar> GrammarCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->grammar;
}

void GrammarCache::insert(const std::string& key, const xgrammar::CompiledGrammar& grammar) {
  const std::size_t n_bytes = grammar.MemorySizeBytes() + 2 * key.size() + sizeof(Entry);
  const std::lock_guard lock(mutex_);
  if (n_bytes > max_bytes_ || index_.contains(key)) return;
  while (n_bytes_ + n_bytes > max_bytes_) {
    n_bytes_ -= entries_.back().n_bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, grammar, n_bytes});
  index_.emplace(key, entries_.begin());
  n_bytes_ += n_bytes;
}

std::size_t GrammarCache::size_bytes() const {
  const std::lock_guard lock(mutex_);
  return n_bytes_;
}

}  // namespace hocket
