#include "engine/queued_reply.h"

#include <algorithm>
#include <utility>

namespace hocket {

QueuedReply::QueuedReply(std::shared_ptr<JobControl> control, std::shared_ptr<ReplyChannel> channel,
                         std::shared_ptr<RequestQueue> queue)
    : control_(std::move(control)),
      channel_(std::move(channel)),
      queue_(std::move(queue)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()) {}

QueuedReply::~QueuedReply() {
  if (!channel_->ended()) cancel();
}

Result<std::optional<ReplyEvent>> QueuedReply::next(std::chrono::milliseconds wait) {
  const auto until = Clock::now() + wait;
  while (true) {
    // While the request is queued its client keeps the time: the generation thread may be busy with another one.
    const bool queued = control_->phase == RequestPhase::kQueued;
    TRY_ASSIGN(auto event, channel_->next(queued ? std::min(until, control_->queue_deadline) : until));
    if (event) return event;
    TRY(control_->flow->check());  // also when everything is written and only waits to be read
    if (channel_->ended() || Clock::now() >= until) return event;
    if (queued && Clock::now() >= control_->queue_deadline) {
      queue_->expire();
      // It may have started just now: then wait on, without spinning.
      if (!channel_->ended() && control_->phase == RequestPhase::kQueued) {
        TRY_ASSIGN(event, channel_->next(std::min(until, Clock::now() + std::chrono::milliseconds(10))));
        if (event) return event;
      }
    }
  }
}

void QueuedReply::cancel() {
  queue_->withdraw(*control_);
}

}  // namespace hocket
