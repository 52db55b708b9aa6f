// tests/support/fake_music_service.h: a MusicService without a model: real jobs, and a runner that a test writes.
//
// By default a job of any kind makes what the real service makes, in small: JSON, sound, a latent.
//
// Threads  any; what a test sets is set before requests come.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/music_service.h"

namespace hocket {

class FakeMusicService final : public MusicService {
 public:
  explicit FakeMusicService(const JobLimits& limits = {}) {
    auto queue = JobQueue::open({{}, limits}, [this](const RunningJob& job) { return run(job); });
    CHECK(queue.ok());
    queue_ = std::move(*queue);
  }
  ~FakeMusicService() override { release(); }

  // What tests set.
  std::optional<Error> refuse;       // submit() fails with it
  std::optional<Error> not_ready;    // ready() fails with it
  std::atomic<bool> holding{false};  // jobs wait for release() or their cancel
  std::function<Result<std::vector<JobOutput>>(const RunningJob&)> runner;
  void release() { holding = false; }

  // What tests look at.
  struct Seen {
    MusicTask task;
    std::string owner;
    std::vector<MusicRequest> requests;
    std::vector<std::pair<std::string, std::string>> sounds;
  };
  std::vector<Seen> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  int n_scans = 0;

  Result<void> ready(MusicTask task) const override {
    if (not_ready) return *not_ready;
    return {};
  }
  MusicInventory inventory() const override {
    return {{"lm.gguf"}, {"text.gguf"}, {"base.gguf", "turbo.gguf"}, {"vae.gguf"}, {"folk.safetensors"}};
  }
  int max_batch() const override { return 4; }
  Result<void> rescan() override {
    ++n_scans;
    return {};
  }
  Result<JobStatus> submit(const MusicSubmission& submission) override {
    if (refuse) return *refuse;
    Seen one{submission.task, submission.owner, submission.requests, {}};
    for (const JobInput& sound : submission.sounds)
      one.sounds.emplace_back(sound.name,
                              std::string(reinterpret_cast<const char*>(sound.bytes.data()), sound.bytes.size()));
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(std::move(one));
    }
    return queue_->submit({std::string(music_task_name(submission.task)),
                           submission.owner,
                           music_requests_json(submission.requests),
                           submission.sounds,
                           {}});
  }
  Result<JobStatus> job(std::string_view id, std::string_view owner) override { return queue_->status(id, owner); }
  Result<JobStatus> wait(std::string_view id, std::string_view owner, std::chrono::milliseconds limit) override {
    return queue_->wait(id, owner, limit);
  }
  std::vector<JobStatus> jobs(std::string_view owner) override { return queue_->list(owner); }
  Result<std::vector<BlobFile>> results(std::string_view id, std::string_view owner) override {
    return queue_->results(id, owner);
  }
  Result<JobStatus> cancel(std::string_view id, std::string_view owner) override { return queue_->cancel(id, owner); }
  Result<void> forget(std::string_view id, std::string_view owner) override { return queue_->forget(id, owner); }
  JobStats stats() override { return queue_->stats(); }
  void stop(std::chrono::milliseconds limit) override { queue_->stop(limit); }

  static JobOutput output(const std::string& name, const std::string& type, const std::string& text) {
    JobOutput o{name, type, std::vector<std::byte>(text.size())};
    std::memcpy(o.bytes.data(), text.data(), text.size());
    return o;
  }

 private:
  Result<std::vector<JobOutput>> run(const RunningJob& job) {
    job.progress("diffusion", 3, 8);
    while (holding && !job.cancel().cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (job.cancel().cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    if (runner) return runner(job);
    const JobOutput json = output("requests.json", "application/json", job.request());
    const JobOutput latent = output("track0.latent", "application/octet-stream", std::string(256, 'L'));
    if (job.kind() == "lm") return std::vector<JobOutput>{json};
    if (job.kind() == "understand") return std::vector<JobOutput>{json, latent};
    if (job.kind() == "vae") return std::vector<JobOutput>{latent};
    std::vector<JobOutput> tracks;
    const auto requests = parse_music_requests(job.request());
    for (int i = 0; i < requests->front().synth_batch_size; ++i) {
      tracks.push_back(output("track" + std::to_string(i) + ".mp3", "audio/mpeg", "MP3 " + std::to_string(i)));
      tracks.push_back(latent);
    }
    return tracks;
  }

  mutable std::mutex mutex_;
  std::vector<Seen> seen_;
  std::unique_ptr<JobQueue> queue_;
};

}  // namespace hocket
