#include "store/residency.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {

Result<std::shared_ptr<const void>> Residency::borrow_any(const std::string& key, const LoadAny& load) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto it = known_.find(key); it != known_.end())
    if (auto resident = it->second.lock()) return resident;
  if (policy_ == ResidencyPolicy::kStrict && !known_.empty())
    return Error(ErrorCode::kInternal,
                 fmt::format("{} is still in use while {} is to be loaded", known_.begin()->first, key), key);
  TRY_ASSIGN(std::shared_ptr<const void> loaded, load());
  known_[key] = loaded;
  if (policy_ == ResidencyPolicy::kKeep) kept_[key] = loaded;
  return loaded;
}

std::size_t Residency::n_resident() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

}  // namespace hocket
