#include "engine/flow_registry.h"

#include <algorithm>
#include <utility>

namespace hocket {
namespace {

// Of requests that have ended; those that are still read stay anyway.
constexpr std::size_t kMostEnded = 256;

}  // namespace

void FlowRegistry::add(std::string id, std::shared_ptr<FlowControl> flow, std::weak_ptr<ReplyChannel> channel) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.id == id; });
  entries_.push_back({std::move(id), std::move(flow), std::move(channel)});
  while (entries_.size() > kMostEnded && entries_.front().channel.expired()) entries_.pop_front();
}

std::optional<Result<void>> FlowRegistry::acknowledge(std::string_view id, uint64_t chunk) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) { return entry.id == id; });
  if (found == entries_.rend()) return std::nullopt;
  Result<void> acknowledged = found->flow->acknowledge(chunk);
  if (const auto channel = found->channel.lock()) channel->wake();
  return acknowledged;
}

}  // namespace hocket
