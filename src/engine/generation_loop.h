// engine/generation_loop.h: what the generation thread does: starts jobs, runs steps, ends jobs.
//
// A job that does not fit now lets later ones pass, but not for ever.
//
// Owns     the scheduler. Borrows memory and queue.
// Threads  run() is the generation thread.
// Errors   those of jobs end their replies.
#pragma once

#include <memory>

#include "engine/request_queue.h"
#include "engine/service_metrics.h"
#include "runtime/lanes/scheduler.h"

namespace hocket {

class GenerationLoop {
 public:
  GenerationLoop(LaneMemory& memory, std::size_t n_lanes, std::shared_ptr<RequestQueue> queue,
                 std::shared_ptr<MetricsRecorder> metrics)
      : scheduler_(memory, n_lanes), queue_(std::move(queue)), metrics_(std::move(metrics)) {}

  // Until the queue is closed and its jobs have ended.
  void run();

 private:
  void start_jobs();
  void end(Job& job, Result<void> result);

  Scheduler scheduler_;
  std::shared_ptr<RequestQueue> queue_;
  std::shared_ptr<MetricsRecorder> metrics_;
};

}  // namespace hocket
