// runtime/lanes/prefix_cache.h: prompts that were evaluated, kept in the memory for prompts that begin alike.
//
// An entry is a sequence of its own that shares its cells with the one it was forked from; it costs no cells until that
// sequence's lane ends. Each tenant has a radix tree of the tokens of its entries, and nothing of another's is ever
// used.
//
// Lineage. The first n_strict tokens of an entry went through the chunks of a cold run; what follows came through the
// steps of an answer, whose rounding is another. A prompt continues from the longest beginning that gives exactly the
// rows of a cold run: whole chunks, or the whole prompt with the row of its last token. Only who allows it continues
// from other places: from any token that the memory can be cut at, from generated ones too. Then its own state is
// strict only as far as it was before. Where the memory cannot be cut at the wanted place an earlier one is taken.
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
#include "runtime/lanes/sequence_pool.h"
#include "runtime/lanes/token_tree.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

enum class CacheStatus {
  kDisabled,         // nothing was looked for
  kMiss,             // nothing was found
  kPrefix,           // whole chunks of a prompt
  kExactPrefix,      // a prompt beyond its last whole chunk
  kGeneratedPrefix,  // an answer, too
  kExactPrompt,      // all of it
};
inline constexpr std::size_t kCacheStatuses = 6;

struct PrefixCacheOptions {
  std::size_t n_chunk = 128;
  std::size_t n_entries = 16;
  std::size_t n_tokens = 0;  // of all entries, shared beginnings counted once; 0: half of the memory's cells
  std::size_t n_least = 16;  // shorter beginnings are not worth it, but for whole prompts
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

  struct Found {
    CacheStatus status = CacheStatus::kMiss;
    std::size_t n_tokens = 0;           // that `target` holds now
    std::size_t n_strict = 0;           // of them; the rest came through the steps of an answer or of another chunking
    std::size_t n_generated = 0;        // of them: tokens of answers
    std::span<const float> last_row{};  // when these are all: the row after the last one; valid until the next call
  };
  // Fills the empty sequence `target` with the longest usable beginning of `tokens`. any_lineage: see above.
  Result<Found> restore(SeqId target, std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage);

  // For a prompt that is to take nothing: it is counted.
  Found pass_over();

  struct Lineage {
    std::size_t n_strict = 0;
    std::size_t n_prompt = 0;  // the rest was generated
  };
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
  // How many tokens of `entry`, n_same of which are those of the prompt, a prompt can start from.
  std::size_t usable(const Entry& entry, std::size_t n_same, std::size_t n_prompt, bool any_lineage) const;
  static CacheStatus status_of(const Entry& entry, std::size_t n, std::size_t n_prompt, std::size_t n_chunk);
  Entries::iterator find(std::span<const TokenId> tokens, const std::string& tenant);
  void touch(Entries::iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }
  void erase(Entries::iterator entry);
  std::size_t n_tokens() const;
  void count();
  Found counted(const Found& found);

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
