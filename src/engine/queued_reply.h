// engine/queued_reply.h: the client's end of a request in the queue.
//
// Owns     its share of channel, control and queue: it may outlive the service.
// Threads  next() by one thread; cancel() from any.
#pragma once

#include <memory>

#include "engine/chat_service.h"
#include "engine/job.h"
#include "engine/reply_channel.h"
#include "engine/request_queue.h"

namespace hocket {

class QueuedReply final : public Reply {
 public:
  QueuedReply(std::shared_ptr<JobControl> control, std::shared_ptr<ReplyChannel> channel,
              std::shared_ptr<RequestQueue> queue);
  ~QueuedReply() override;

  const std::string& request_id() const override { return control_->id; }
  int64_t created() const override { return created_; }
  Result<std::optional<ReplyEvent>> next(std::chrono::milliseconds wait) override;
  void cancel() override;

 private:
  std::shared_ptr<JobControl> control_;
  std::shared_ptr<ReplyChannel> channel_;
  std::shared_ptr<RequestQueue> queue_;
  int64_t created_;
};

}  // namespace hocket
