// engine/flow_registry.h: which request an acknowledgement is for.
//
// A client acknowledges what it has read, and it may still be reading when everything is written: so requests stay
// known here after their end, the latest of them.
//
// Owns     the flow control of requests.
// Threads  any.
// Errors   acknowledge(): those of FlowControl. Unknown ids are not an error here: nullopt.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "engine/reply_channel.h"

namespace hocket {

class FlowRegistry {
 public:
  void add(std::string id, std::shared_ptr<FlowControl> flow, std::weak_ptr<ReplyChannel> channel);
  std::optional<Result<void>> acknowledge(std::string_view id, uint64_t chunk);

 private:
  struct Entry {
    std::string id;
    std::shared_ptr<FlowControl> flow;
    std::weak_ptr<ReplyChannel> channel;  // until its reader has gone
  };
  std::mutex mutex_;
  std::deque<Entry> entries_;  // the latest last
};

}  // namespace hocket
