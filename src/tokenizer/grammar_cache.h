// tokenizer/grammar_cache.h: compiled grammars by source, the least recently used ones dropped first.
//
// Threads  any.
// Cost     a hash look-up.
#pragma once

#include <xgrammar/compiler.h>

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace hocket {

class GrammarCache {
 public:
  explicit GrammarCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<xgrammar::CompiledGrammar> find(const std::string& key);
  // A grammar that is larger than the whole cache is not kept.
  void insert(const std::string& key, const xgrammar::CompiledGrammar& grammar);
  std::size_t size_bytes() const;

 private:
  struct Entry {
    std::string key;
    xgrammar::CompiledGrammar grammar;
    std::size_t n_bytes;
  };

  mutable std::mutex mutex_;
  std::size_t max_bytes_, n_bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

}  // namespace hocket
