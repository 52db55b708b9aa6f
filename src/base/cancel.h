// base/cancel.h: asking work in progress to stop.
//
// Copies share one flag. The worker looks at cancelled() between steps; whoever holds a copy may cancel().
//
// Threads  any.
#pragma once

#include <atomic>
#include <memory>

namespace hocket {

class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const { flag_->store(true, std::memory_order_release); }
  bool cancelled() const { return flag_->load(std::memory_order_acquire); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace hocket
