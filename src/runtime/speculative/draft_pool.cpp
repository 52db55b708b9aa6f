#include "runtime/speculative/draft_pool.h"

#include <algorithm>

namespace hocket {

DraftPool::DraftPool(std::vector<std::unique_ptr<DraftSource>> sources) {
  for (auto& source : sources) {
    slots_.emplace_back();
    slots_.back().source = std::move(source);
  }
}

Result<DraftLease> DraftPool::lease(std::span<const TokenId> prompt, const std::string& tenant, std::size_t n_cached) {
  Slot* best = nullptr;
  std::size_t n_best = 0;
  for (Slot& slot : slots_) {
    if (*slot.in_use) continue;
    std::size_t n_same = 0;
    if (slot.tenant == tenant) {
      const std::size_t n_both = std::min({slot.prompt.size(), prompt.size(), n_cached});
      const auto end = slot.prompt.begin() + static_cast<std::ptrdiff_t>(n_both);
      n_same =
          static_cast<std::size_t>(std::mismatch(slot.prompt.begin(), end, prompt.begin()).first - slot.prompt.begin());
    }
    if (best == nullptr || n_same > n_best) {
      best = &slot;
      n_best = n_same;
    }
  }
  if (best == nullptr) return DraftLease();
  DraftLease lease(*best->source, *best->in_use);
  best->tenant = tenant;
  best->prompt.assign(prompt.begin(), prompt.end());
  TRY(best->source->begin(n_best));
  return lease;
}

}  // namespace hocket
