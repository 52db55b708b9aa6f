#include "runtime/lanes/prefix_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace hocket {

PrefixCache::PrefixCache(SequencePool& sequences, const PrefixCacheOptions& options)
    : sequences_(&sequences), options_(options) {
  if (options_.n_tokens == 0) options_.n_tokens = sequences.memory().n_cells() / 2;
  stats_.most_tokens = options_.n_tokens;
}

PrefixCache::Best PrefixCache::best(std::span<const TokenId> tokens, const std::string& tenant,
                                    bool any_lineage) const {
  CHECK(!tokens.empty());
  Best best;
  const auto tree = trees_.find(tenant);
  if (tree == trees_.end()) return best;
  tree->second.visit(tokens, [&](TokenTree::Id id, std::size_t n_same) {
    if (n_same <= best.n_tokens) return true;
    const auto entry = by_id_.at(id);
    const auto can_cut = [&](std::size_t n) { return sequences_->memory().can_truncate(entry->sequence.id(), n); };
    const std::size_t n = usable_tokens(kept(*entry), n_same, tokens.size(), any_lineage, rules(), can_cut);
    if (n > best.n_tokens) best = {entry, n};
    return false;
  });
  return best;
}

std::size_t PrefixCache::longest(std::span<const TokenId> tokens, const std::string& tenant, bool any_lineage) const {
  return best(tokens, tenant, any_lineage).n_tokens;
}

Result<PrefixCache::Found> PrefixCache::fill(SeqId target, const Best& from, std::span<const TokenId> tokens) const {
  if (from.n_tokens == 0) return Found();
  SequenceMemory& memory = sequences_->memory();
  Result<void> filled = memory.fork(from.entry->sequence.id(), target);
  if (filled) filled = memory.truncate(target, from.n_tokens);
  if (!filled) {
    memory.clear(target);
    return filled.error();
  }
  Found found = found_state(kept(*from.entry), from.n_tokens, tokens.size(), rules());
  if (from.n_tokens == tokens.size()) found.last_row = from.entry->last_row;
  return found;
}

Result<PrefixCache::Found> PrefixCache::restore(SeqId target, std::span<const TokenId> tokens,
                                                const std::string& tenant, bool any_lineage) {
  const Best from = best(tokens, tenant, any_lineage);
  if (from.n_tokens > 0) touch(from.entry);
  TRY_ASSIGN(const Found found, fill(target, from, tokens));
  count_found(found);
  return found;
}

Result<PrefixCache::Found> PrefixCache::copy(SeqId target, std::span<const TokenId> tokens, const std::string& tenant,
                                             bool any_lineage) const {
  return fill(target, best(tokens, tenant, any_lineage), tokens);
}

PrefixCache::Found PrefixCache::pass_over() {
  Found found;
  found.status = CacheStatus::kDisabled;
  count_found(found);
  return found;
}

void PrefixCache::count_found(const Found& found) {
  const std::lock_guard lock(mutex_);
  ++stats_.n_found[static_cast<std::size_t>(found.status)];
  stats_.n_tokens_found += found.n_tokens;
}

PrefixCache::Entries::iterator PrefixCache::find(std::span<const TokenId> tokens, const std::string& tenant) {
  auto found = entries_.end();
  const auto tree = trees_.find(tenant);
  if (tree == trees_.end()) return found;
  tree->second.visit(tokens, [&](TokenTree::Id id, std::size_t n_same) {
    if (n_same < tokens.size()) return true;
    const auto entry = by_id_.at(id);
    if (entry->tokens.size() == tokens.size()) found = entry;
    return found != entries_.end();
  });
  return found;
}

bool PrefixCache::record(SeqId seq, std::span<const TokenId> tokens, const std::string& tenant, const Lineage& lineage,
                         std::span<const float> last_row) {
  if (options_.n_entries == 0 || tokens.empty() || tokens.size() > options_.n_tokens) return false;
  if (const auto same = find(tokens, tenant); same != entries_.end()) {
    touch(same);
    // The same tokens by a better way, or with the row that was not known yet.
    if (lineage.n_strict < same->lineage.n_strict) return true;
    if (lineage.n_strict == same->lineage.n_strict) {
      if (same->last_row.empty() && !last_row.empty()) {
        same->last_row.assign(last_row.begin(), last_row.end());
        same->lineage = lineage;  // an answer has become a part of a prompt
      }
      return true;
    }
    erase(same);
  }
  while (entries_.size() >= options_.n_entries) evict_one();
  auto sequence = sequences_->take();
  if (!sequence && evict_one()) sequence = sequences_->take();
  if (!sequence || !sequences_->memory().fork(seq, sequence->id())) return false;
  const TokenTree::Id id = ++last_id_;
  entries_.push_front(
      {id, tenant, {tokens.begin(), tokens.end()}, lineage, {last_row.begin(), last_row.end()}, std::move(*sequence)});
  by_id_[id] = entries_.begin();
  trees_[tenant].insert(tokens, id);
  while (n_tokens() > options_.n_tokens && entries_.size() > 1) evict_one();
  count();
  return by_id_.contains(id);
}

void PrefixCache::erase(Entries::iterator entry) {
  const auto tree = trees_.find(entry->tenant);
  tree->second.erase(entry->tokens, entry->id);
  if (tree->second.empty()) trees_.erase(tree);
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

std::size_t PrefixCache::n_tokens() const {
  std::size_t n = 0;
  for (const auto& [tenant, tree] : trees_) n += tree.n_tokens();
  return n;
}

bool PrefixCache::evict_one() {
  if (entries_.empty()) return false;
  auto victim = std::prev(entries_.end());
  const std::size_t n_all = n_tokens();
  for (const auto& [tenant, tree] : trees_) {
    if (trees_.size() == 1 || tree.n_tokens() <= n_all / 2) continue;
    const auto oldest =
        std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& e) { return e.tenant == tenant; });
    victim = std::prev(oldest.base());
  }
  erase(victim);
  {
    const std::lock_guard lock(mutex_);
    ++stats_.n_evicted;
  }
  count();
  return true;
}

void PrefixCache::clear() {
  while (!entries_.empty()) erase(entries_.begin());
  count();
}

void PrefixCache::clear(const std::string& tenant) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->tenant == tenant) erase(entry);
    entry = next;
  }
  count();
}

void PrefixCache::count() {
  const std::lock_guard lock(mutex_);
  stats_.n_entries = entries_.size();
  stats_.n_tenants = trees_.size();
  stats_.n_tokens = n_tokens();
}

PrefixCacheStats PrefixCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace hocket
