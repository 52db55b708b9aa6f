// runtime/lanes/prefix_cache.h: prompts that were evaluated, kept in the memory for prompts that begin alike.
//
// An entry is a sequence of its own that shares its cells with the one it was forked from; it costs no cells until that
// sequence's lane ends. Each tenant has a radix tree of the tokens of its entries, and nothing of another's is ever
// used.
//
// From where a prompt may go on is told by reuse_rules.h. Where the memory cannot be cut at the wanted place an earlier
// one is taken.
//
// Owns     the entries' sequences, and a row of logits of each that ends a prompt.
// Threads  one user at a time; stats() from any thread.
// Errors   restore(): those of the memory; the target is then empty.
// Cost     restore() linear in the match; forks are O(cells), no data moves.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "runtime/lanes/reuse_rules.h"
#include "runtime/lanes/sequence_pool.h"
#include "runtime/lanes/token_tree.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct PrefixCacheOptions {
  ReuseRules rules;
  std::size_t n_entries = 16;
  std::size_t n_tokens = 0;  // of all entries, shared beginnings counted once; 0: half of the memory's cells
};

struct PrefixCacheStats {
  std::size_t n_entries = 0, n_tenants = 0;
  std::size_t n_tokens = 0;                        // shared beginnings counted once
  std::size_t most_tokens = 0;                     // the budget
  uint64_t n_evicted = 0;                          // to make room
  std::array<uint64_t, kCacheStatuses> n_found{};  // prompts by what was found
  uint64_t n_tokens_found = 0;
};

class PrefixCache {
 public:
  PrefixCache(SequencePool& sequences, const PrefixCacheOptions& options);

  using Found = FoundState;  // its row is valid until the next call
  // Fills the empty sequence `target` with the longest usable beginning of `tokens`. any_lineage: see above.
  Result<Found> restore(SeqId target, std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage);
  // The same without counting it, and without touching the entry.
  Result<Found> copy(SeqId target, std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage) const;

  const ReuseRules& rules() const { return options_.rules; }
  // How many tokens restore() would find.
  std::size_t longest(std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage) const;

  // For a prompt that is to take nothing: it is counted.
  Found pass_over();
  // Counts what a prompt has found elsewhere.
  void count_found(const Found& found);

  using Lineage = StateLineage;
  // Keeps what `seq` holds: `tokens`. last_row: what follows the last one, where a prompt ends; else empty. Whether it
  // is kept.
  bool record(SeqId seq, std::span<const TokenId> tokens, const std::string& tenant, const Lineage& lineage,
              std::span<const float> last_row);

  // The entry that was not used for the longest time goes; a tenant that holds more than half of everything gives
  // first. False when there is none.
  bool evict_one();
  void clear();
  void clear(const std::string& tenant);
  PrefixCacheStats stats() const;

 private:
  struct Entry {
    TokenTree::Id id;
    std::string tenant;
    std::vector<TokenId> tokens;
    Lineage lineage;
    std::vector<float> last_row;
    Sequence sequence;
  };
  using Entries = std::list<Entry>;
  static KeptState kept(const Entry& entry) { return {entry.tokens.size(), entry.lineage, !entry.last_row.empty()}; }
  struct Best {
    Entries::iterator entry;
    std::size_t n_tokens = 0;
  };
  Best best(std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage) const;
  Result<Found> fill(SeqId target, const Best& from, std::span<const TokenId> tokens) const;
  Entries::iterator find(std::span<const TokenId> tokens, const std::string& tenant);
  void touch(Entries::iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }
  void erase(Entries::iterator entry);
  std::size_t n_tokens() const;
  void count();

  SequencePool* sequences_;
  PrefixCacheOptions options_;
  Entries entries_;  // most recently used first
  std::unordered_map<TokenTree::Id, Entries::iterator> by_id_;
  std::map<std::string, TokenTree> trees_;  // by tenant; none is empty
  TokenTree::Id last_id_ = 0;
  mutable std::mutex mutex_;
  PrefixCacheStats stats_;
};

}  // namespace hocket
