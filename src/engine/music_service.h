// engine/music_service.h: songs as jobs: the product without HTTP.
//
//   TRY_ASSIGN(auto music, MusicService::open({.models = folder}));
//   TRY_ASSIGN(JobStatus job, music->submit({MusicTask::kSynth, "", {request}, {}}));
//   TRY_ASSIGN(job, music->wait(job.record.id, "", std::chrono::minutes(5)));
//
// A request is checked completely when it is submitted: fields, names of models, the sounds that come with it, whether
// the task can work on them. Then it waits for the one thread that makes music.
//
// Owns     models, jobs, that thread.
// Threads  every method from any thread.
// Errors   submit(): kInvalid naming the field (reason "too_large" where a size is the reason), kUnsupported (reason
//          "models_missing") with the missing kinds in `param`, kNotFound (reason "model_not_found"), and those of
//          JobQueue::submit(). The others: those of JobQueue.
// Source   ace-step.md §10.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/music_engine.h"
#include "engine/music_library.h"
#include "jobs/job_queue.h"
#include "music/request.h"

namespace hocket {

enum class MusicTask {
  kCompose,     // words → requests with codes
  kSynth,       // requests, sounds → tracks
  kSong,        // words → tracks: compose where there is a language model, then synth
  kUnderstand,  // sound → request
  kVae,         // audio → latent, or back
};
std::string_view music_task_name(MusicTask task);  // the kind of its jobs: "lm", "synth", "song", …

struct MusicSubmission {
  MusicTask task = MusicTask::kSynth;
  std::string owner;
  std::vector<MusicRequest> requests;
  // "audio", "src_latents", "ref_audio", "ref_latents": files as they are, latents as float32.
  std::vector<JobInput> sounds;
};

struct MusicServiceOptions {
  std::string models;                             // folder
  std::string adapters;                           // folder; "": none
  std::map<MusicFileKind, std::string> defaults;  // names of files for requests that name none
  MusicRunOptions run;
  ResidencyPolicy residency = ResidencyPolicy::kStrict;
  JobQueueOptions jobs;
  int max_batch = 4;  // variations and requests of one call to the language model, 1 to 9
};

class MusicService {
 public:
  static Result<std::shared_ptr<MusicService>> open(const MusicServiceOptions& options);
  virtual ~MusicService() = default;

  // Whether there are the models that the task needs.
  virtual Result<void> ready(MusicTask task) const = 0;
  virtual MusicInventory inventory() const = 0;
  virtual int max_batch() const = 0;
  // Looks at the folders again.
  virtual Result<void> rescan() = 0;

  virtual Result<JobStatus> submit(const MusicSubmission& submission) = 0;
  virtual Result<JobStatus> job(std::string_view id, std::string_view owner) = 0;
  virtual Result<JobStatus> wait(std::string_view id, std::string_view owner, std::chrono::milliseconds limit) = 0;
  virtual std::vector<JobStatus> jobs(std::string_view owner) = 0;
  virtual Result<std::vector<BlobFile>> results(std::string_view id, std::string_view owner) = 0;
  virtual Result<JobStatus> cancel(std::string_view id, std::string_view owner) = 0;
  virtual Result<void> forget(std::string_view id, std::string_view owner) = 0;
  virtual JobStats stats() = 0;  // of all owners
  // By one thread: as JobQueue::stop().
  virtual void stop(std::chrono::milliseconds limit) = 0;
};

// What a request for this task has where its text says nothing.
MusicRequest music_defaults(MusicTask task);

}  // namespace hocket
