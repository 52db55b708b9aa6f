// engine/local_music_service.h: MusicService over the model files of this machine.
//
// Owns     library, engine, queue.
// Threads  the queue's thread runs the jobs; everything else from any thread.
#pragma once

#include "engine/music_engine.h"
#include "engine/music_library.h"
#include "engine/music_service.h"

namespace hocket {

class LocalMusicService final : public MusicService {
 public:
  static Result<std::shared_ptr<MusicService>> open(const MusicServiceOptions& options);

  Result<void> ready(MusicTask task) const override;
  MusicInventory inventory() const override { return library_->inventory(); }
  int max_batch() const override { return max_batch_; }
  Result<void> rescan() override { return library_->rescan(); }
  Result<JobStatus> submit(const MusicSubmission& submission) override;
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

 private:
  explicit LocalMusicService(int max_batch) : max_batch_(max_batch) {}
  Result<std::vector<JobOutput>> run(const RunningJob& job);
  Result<std::vector<JobOutput>> run_compose(const RunningJob& job, const std::vector<MusicRequest>& requests);
  Result<std::vector<JobOutput>> run_synth(const RunningJob& job, const std::vector<MusicRequest>& requests);
  Result<std::vector<JobOutput>> run_song(const RunningJob& job, const std::vector<MusicRequest>& requests);
  Result<std::vector<JobOutput>> run_understand(const RunningJob& job, const MusicRequest& request);
  Result<std::vector<JobOutput>> run_vae(const RunningJob& job, const MusicRequest& request);

  const int max_batch_;
  std::unique_ptr<MusicLibrary> library_;
  std::unique_ptr<MusicEngine> engine_;
  std::unique_ptr<JobQueue> queue_;  // last: its thread uses the others
};

}  // namespace hocket
