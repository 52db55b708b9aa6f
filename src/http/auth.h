// http/auth.h: the keys that clients must show.
//
// A key comes as `Authorization: Bearer KEY` or `x-api-key: KEY`.
//
// Threads  any; replace() while requests are checked.
// Cost     accepts() looks at every key whatever the answer, so that its time says nothing about them.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http/exchange.h"

namespace hocket {

// What the client shows as its key; "" when it shows none.
std::string_view shown_key(const HttpRequest& request);

class KeyRing {
 public:
  explicit KeyRing(std::vector<std::string> keys) : keys_(std::move(keys)) {}
  // Without keys everybody is let in.
  bool accepts(const HttpRequest& request) const;
  void replace(std::vector<std::string> keys);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> keys_;
};

}  // namespace hocket
