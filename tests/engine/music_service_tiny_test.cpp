// Songs through MusicService with the golden models: from words to files, and what is refused before it becomes a job.
#include "engine/music_service.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "support/temp_folder.h"

namespace hocket::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kSoon{120'000};  // only a test that fails waits so long

std::string models_folder() {
  return std::string(HOCKET_TEST_DATA) + "/music/models";
}

MusicRequest song() {
  MusicRequest request;
  request.caption = "calm piano, soft rain";
  request.lyrics = "[Verse]\nhello\n";
  request.bpm = 90;
  request.duration = 1;
  request.keyscale = "A minor";
  request.timesignature = "4";
  request.vocal_language = "en";
  request.seed = 7;
  request.lm_seed = 1;
  request.lm_temperature = 0;
  request.lm_cfg_scale = 1;
  request.inference_steps = 2;
  request.output_format = "wav16";
  request.synth_model = "dit-turbo.gguf";
  return request;
}

class MusicServiceTiny : public testing::Test {
 protected:
  static MusicServiceOptions tiny() {
    MusicServiceOptions options;
    options.models = models_folder();
    options.adapters = models_folder();
    options.run.n_threads = 1;
    return options;
  }
  static std::shared_ptr<MusicService> open(const MusicServiceOptions& options = tiny()) {
    auto service = MusicService::open(options);
    if (!service) throw std::runtime_error(service.error().message);
    return *service;
  }
  static JobStatus end_of(MusicService& music, const MusicSubmission& submission) {
    const auto job = music.submit(submission);
    EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
    if (!job) return {};
    return *music.wait(job->record.id, "", kSoon);
  }
  // The files of a job that must succeed.
  static std::vector<std::pair<JobFile, std::vector<std::byte>>> make(MusicService& music,
                                                                      const MusicSubmission& submission) {
    const JobStatus job = end_of(music, submission);
    EXPECT_EQ(job.record.state, JobState::kDone) << (job.record.error ? job.record.error->message : "");
    std::vector<std::pair<JobFile, std::vector<std::byte>>> made;
    auto files = music.results(job.record.id, "");
    if (!files) return made;
    for (BlobFile& file : *files) made.emplace_back(file.file(), *file.read_rest());
    return made;
  }
  static std::string text_of(const std::vector<std::byte>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  static std::vector<std::byte> latents(std::size_t n_frames, float value = 0.1f) {
    std::vector<std::byte> bytes(n_frames * 256);
    for (std::size_t at = 0; at < bytes.size(); at += 4) std::memcpy(bytes.data() + at, &value, 4);
    return bytes;
  }
};

TEST_F(MusicServiceTiny, WordsBecomeCodesAndCodesASong) {
  const auto music = open();
  const auto composed = make(*music, {MusicTask::kCompose, "", {song()}, {}});
  ASSERT_EQ(composed.size(), 1U);
  EXPECT_EQ(composed[0].first.media_type, "application/json");
  auto requests = parse_music_requests(text_of(composed[0].second));
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ((*requests)[0].caption, song().caption);
  EXPECT_FALSE((*requests)[0].audio_codes.empty());
  (*requests)[0].audio_codes = "1,2,3";
  const auto made = make(*music, {MusicTask::kSynth, "", *requests, {}});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].first.name, "track0.wav");
  EXPECT_EQ(made[0].first.media_type, "audio/wav");
  EXPECT_EQ(text_of(made[0].second).substr(0, 4), "RIFF");
  EXPECT_GE(made[0].second.size(), 44U + 16 * 1920 * 4);  // 15 frames, rounded up to a patch
  EXPECT_EQ(made[1].second.size(), 16U * 256);
}

TEST_F(MusicServiceTiny, OneJobMakesASongOfWords) {
  const auto music = open();
  MusicRequest two = song();
  two.lm_exact_duration = true;  // the tiny language model would write a hundred codes
  two.synth_batch_size = 2;
  const auto made = make(*music, {MusicTask::kSong, "", {two}, {}});
  ASSERT_EQ(made.size(), 4U);
  EXPECT_NE(made[0].second, made[2].second);
  EXPECT_TRUE(music->jobs("")[0].record.warnings.empty());
}

TEST_F(MusicServiceTiny, SoundGoesToALatentAndBackAndIsUnderstood) {
  const auto music = open();
  MusicRequest request = song();
  request.duration = 0.4f;
  const auto made = make(*music, {MusicTask::kSynth, "", {request}, {}});
  ASSERT_EQ(made.size(), 2U);
  const JobInput sound{"audio", made[0].second}, latent{"src_latents", made[1].second};
  const auto encoded = make(*music, {MusicTask::kVae, "", {MusicRequest()}, {sound}});
  ASSERT_EQ(encoded.size(), 1U);
  EXPECT_EQ(encoded[0].second.size(), 10U * 256);
  const auto decoded = make(*music, {MusicTask::kVae, "", {request}, {latent}});
  ASSERT_EQ(decoded.size(), 1U);
  EXPECT_EQ(decoded[0].first.media_type, "audio/wav");

  MusicRequest greedy = music_defaults(MusicTask::kUnderstand);
  greedy.lm_temperature = 0;
  greedy.synth_model = "dit-turbo.gguf";
  const auto heard = make(*music, {MusicTask::kUnderstand, "", {greedy}, {sound}});
  ASSERT_EQ(heard.size(), 2U);
  const auto words = parse_music_requests(text_of(heard[0].second));
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(parse_audio_codes((*words)[0].audio_codes).size(), 2U);  // 5 codes a second
  EXPECT_EQ(heard[1].second.size(), 10U * 256);
  EXPECT_EQ(make(*music, {MusicTask::kUnderstand, "", {greedy}, {latent}}).size(), 1U);

  MusicRequest cover = request;
  cover.task_type = "cover";
  EXPECT_EQ(make(*music, {MusicTask::kSynth, "", {cover}, {sound, {"ref_latents", made[1].second}}}).size(), 2U);
}

TEST_F(MusicServiceTiny, KeptNetworksGiveTheSameSong) {
  MusicServiceOptions keep = tiny();
  keep.residency = ResidencyPolicy::kKeep;
  const auto kept = open(keep), strict = open();
  MusicRequest request = song();
  const auto expected = make(*strict, {MusicTask::kSynth, "", {request}, {}});
  EXPECT_EQ(make(*kept, {MusicTask::kSynth, "", {request}, {}}).at(0).second, expected.at(0).second);
  request.synth_model = "";  // the one used last, not the first
  EXPECT_EQ(make(*kept, {MusicTask::kSynth, "", {request}, {}}).at(1).second, expected.at(1).second);
  request.adapter = "lora.safetensors";
  EXPECT_NE(make(*kept, {MusicTask::kSynth, "", {request}, {}}).at(1).second, expected.at(1).second);
  request.adapter = "";
  EXPECT_EQ(make(*kept, {MusicTask::kSynth, "", {request}, {}}).at(1).second, expected.at(1).second);
}

TEST_F(MusicServiceTiny, BadRequestsNeverBecomeJobs) {
  const auto music = open();
  const auto refuse = [&](MusicTask task, const MusicRequest& request, const std::vector<JobInput>& sounds,
                          const std::string& param, ErrorCode code = ErrorCode::kInvalid,
                          const std::string& reason = "") {
    const auto job = music->submit({task, "", {request}, sounds});
    ASSERT_FALSE(job.ok()) << param;
    EXPECT_EQ(job.error().param, param) << job.error().message;
    EXPECT_EQ(job.error().code, code) << job.error().message;
    EXPECT_EQ(job.error().reason, reason);
  };
  const auto with = [](const auto& change) {
    MusicRequest request = song();
    change(request);
    return request;
  };
  const MusicRequest fine = song();
  for (const MusicTask task : {MusicTask::kCompose, MusicTask::kSynth, MusicTask::kSong}) {
    refuse(task, with([](MusicRequest& r) { r.caption = ""; }), {}, "caption");
    refuse(task, with([](MusicRequest& r) { r.duration = 601; }), {}, "duration");
    refuse(task, with([](MusicRequest& r) { r.shift = std::nanf(""); }), {}, "shift");
    refuse(task, with([](MusicRequest& r) { r.audio_codes = "1,-2"; }), {}, "audio_codes");
  }
  refuse(MusicTask::kCompose, with([](MusicRequest& r) { r.lm_mode = "write"; }), {}, "lm_mode");
  refuse(MusicTask::kSynth, with([](MusicRequest& r) { r.output_format = "ogg"; }), {}, "output_format");
  refuse(MusicTask::kSynth, with([](MusicRequest& r) { r.task_type = "cover"; }), {}, "task_type");
  refuse(MusicTask::kCompose, with([](MusicRequest& r) { r.lm_model = "none"; }), {}, "lm_model", ErrorCode::kNotFound,
         "model_not_found");
  refuse(MusicTask::kSynth, with([](MusicRequest& r) { r.synth_model = "vae.gguf"; }), {}, "synth_model",
         ErrorCode::kNotFound, "model_not_found");
  refuse(MusicTask::kSynth, with([](MusicRequest& r) { r.vae = "../vae.gguf"; }), {}, "vae", ErrorCode::kNotFound,
         "model_not_found");
  refuse(MusicTask::kSynth, with([](MusicRequest& r) { r.adapter = "../x"; }), {}, "adapter", ErrorCode::kNotFound,
         "model_not_found");

  const auto cover = with([](MusicRequest& r) { r.task_type = "cover"; });
  const std::vector<std::byte> none, odd(255), huge = latents(15'001), good = latents(10);
  const auto infinite = latents(10, std::numeric_limits<float>::infinity()), wild = latents(10, 1e6f);
  const std::vector<std::byte> noise(1000, std::byte{0x42});
  refuse(MusicTask::kSynth, cover, {{"src_latents", none}}, "src_latents");
  refuse(MusicTask::kSynth, cover, {{"src_latents", odd}}, "src_latents");
  refuse(MusicTask::kSynth, cover, {{"src_latents", huge}}, "src_latents", ErrorCode::kInvalid, "too_large");
  refuse(MusicTask::kSynth, cover, {{"src_latents", infinite}}, "src_latents");
  refuse(MusicTask::kSynth, cover, {{"src_latents", wild}}, "src_latents");
  refuse(MusicTask::kSynth, fine, {{"ref_latents", odd}}, "ref_latents");
  refuse(MusicTask::kSynth, cover, {{"audio", none}}, "audio");
  refuse(MusicTask::kSynth, cover, {{"audio", noise}}, "audio");
  refuse(MusicTask::kUnderstand, fine, {}, "audio");
  refuse(MusicTask::kVae, fine, {}, "audio");
  refuse(MusicTask::kVae, fine, {{"audio", noise}, {"src_latents", good}}, "audio");
  EXPECT_FALSE(music->submit({MusicTask::kSynth, "", {}, {}}).ok());
  EXPECT_FALSE(music->submit({MusicTask::kCompose, "", std::vector<MusicRequest>(5, fine), {}}).ok());
  MusicRequest other = fine;
  other.duration = 2;
  const auto differ = music->submit({MusicTask::kSynth, "", {fine, other}, {}});
  ASSERT_FALSE(differ.ok());
  EXPECT_EQ(differ.error().param, "duration");
  EXPECT_TRUE(music->jobs("").empty());
}

TEST_F(MusicServiceTiny, WhatIsIgnoredIsSaid) {
  const auto music = open();
  const std::vector<std::byte> noise(1000, std::byte{0x42}), source = latents(10);
  const JobStatus job = end_of(
      *music, {MusicTask::kSynth, "", {song()}, {{"audio", noise}, {"ref_audio", noise}, {"src_latents", source}}});
  EXPECT_EQ(job.record.state, JobState::kDone);
  ASSERT_EQ(job.record.warnings.size(), 2U);
  EXPECT_NE(job.record.warnings[0].find("the source is ignored"), std::string::npos);
  EXPECT_NE(job.record.warnings[1].find("ref_audio is ignored"), std::string::npos);
  MusicRequest many = song();
  many.lm_batch_size = 9;
  const auto clipped = music->submit({MusicTask::kCompose, "", {many}, {}});
  ASSERT_TRUE(clipped.ok());
  EXPECT_EQ(clipped->record.warnings.size(), 1U);
}

TEST_F(MusicServiceTiny, RequestsWithoutANameGetTheDefault) {
  MusicServiceOptions options = tiny();
  const auto first = [](const MusicServiceOptions& with) { return open(with)->inventory().dit.front(); };
  const std::vector<std::string> all = open(options)->inventory().dit;
  ASSERT_GE(all.size(), 2U);
  options.defaults[MusicFileKind::kDit] = all.back();
  EXPECT_EQ(first(options), all.back());
  MusicRequest named = song(), open_request = song();
  named.synth_model = all.back();
  open_request.synth_model.clear();
  const auto with_default = make(*open(options), {MusicTask::kSynth, "", {open_request}, {}});
  const auto by_name = make(*open(), {MusicTask::kSynth, "", {named}, {}});
  const auto of_first = make(*open(), {MusicTask::kSynth, "", {open_request}, {}});
  ASSERT_EQ(with_default.size(), 2U);
  EXPECT_TRUE(with_default[1].second == by_name[1].second);
  EXPECT_FALSE(with_default[1].second == of_first[1].second);

  options.defaults[MusicFileKind::kVae] = "no-such-vae";
  const auto refused = MusicService::open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(refused.error().param, "--music-vae");
}

TEST_F(MusicServiceTiny, EveryPieceOfWorkAsksForItsRoomFirst) {
  struct Asked {
    std::string what;
    uint64_t n_bytes;
    std::weak_ptr<int> lease;
  };
  std::vector<Asked> asked;  // by the thread of the jobs, one at a time
  std::optional<Error> refuse;
  MusicServiceOptions options = tiny();
  options.run.room = [&](std::string_view what, uint64_t n_bytes, const CancelToken&) -> Result<std::shared_ptr<void>> {
    if (refuse) return *refuse;
    for (const Asked& earlier : asked) EXPECT_TRUE(earlier.lease.expired()) << earlier.what;
    const auto lease = std::make_shared<int>();
    asked.push_back({std::string(what), n_bytes, lease});
    return std::shared_ptr<void>(lease);
  };
  const auto music = open(options);
  MusicRequest request = song();
  request.lm_exact_duration = true;
  const auto made = make(*music, {MusicTask::kSong, "", {request}, {}});
  ASSERT_EQ(made.size(), 2U);
  const JobInput sound{"audio", made[0].second}, latent{"src_latents", made[1].second};
  make(*music, {MusicTask::kUnderstand, "", {music_defaults(MusicTask::kUnderstand)}, {sound}});
  make(*music, {MusicTask::kVae, "", {MusicRequest()}, {sound}});
  make(*music, {MusicTask::kVae, "", {request}, {latent}});
  request.audio_codes = "1,2,3";  // nothing is left for the language model
  make(*music, {MusicTask::kCompose, "", {request}, {}});
  std::vector<std::string> order;
  for (const Asked& one : asked) order.push_back(one.what);
  const std::string planner = "the language model of music";
  EXPECT_EQ(order, (std::vector<std::string>{planner, "the song", "the sound's encoders", planner, "the VAE", "the VAE",
                                             planner}));
  for (const Asked& one : asked) EXPECT_GT(one.n_bytes, 10'000U) << one.what;
  const uintmax_t n_lm = fs::file_size(fs::path(models_folder()) / "lm.gguf");
  EXPECT_GT(asked[0].n_bytes, n_lm / 2);
  refuse = Error(ErrorCode::kOutOfMemory, "there is none");
  const JobStatus failed = end_of(*music, {MusicTask::kSynth, "", {song()}, {}});
  EXPECT_EQ(failed.record.state, JobState::kFailed);
  EXPECT_EQ(failed.record.error->message, "there is none");
}

TEST_F(MusicServiceTiny, APartOfTheModelsDoesAPartOfTheWork) {
  const TempFolder folder;
  for (const char* name : {"lm.gguf", "vae.gguf"})
    fs::copy_file(fs::path(models_folder()) / name, folder.path() / name);
  MusicServiceOptions some = tiny();
  some.models = folder.path().string();
  const auto music = open(some);
  EXPECT_TRUE(music->ready(MusicTask::kCompose).ok());
  EXPECT_TRUE(music->ready(MusicTask::kVae).ok());
  const auto synth = music->ready(MusicTask::kSynth);
  ASSERT_FALSE(synth.ok());
  EXPECT_EQ(synth.error().reason, "models_missing");
  EXPECT_EQ(synth.error().param, "text-encoder,dit");
  EXPECT_EQ(music->submit({MusicTask::kSynth, "", {song()}, {}}).error().reason, "models_missing");
  EXPECT_EQ(music->ready(MusicTask::kUnderstand).error().param, "dit");
  for (const char* name : {"dit-turbo.gguf", "text-encoder.gguf"})
    fs::copy_file(fs::path(models_folder()) / name, folder.path() / name);
  EXPECT_TRUE(music->rescan().ok());
  EXPECT_TRUE(music->ready(MusicTask::kSynth).ok());
  EXPECT_EQ(music->inventory().dit, (std::vector<std::string>{"dit-turbo.gguf"}));
  fs::remove(folder.path() / "lm.gguf");
  EXPECT_TRUE(music->rescan().ok());
  MusicRequest request = song();
  request.duration = 0.1f;
  const JobStatus words = end_of(*music, {MusicTask::kSong, "", {request}, {}});
  EXPECT_EQ(words.record.state, JobState::kDone);
  EXPECT_EQ(words.record.warnings.size(), 1U);
  some.models = folder.file("none");
  EXPECT_EQ(MusicService::open(some).error().code, ErrorCode::kIo);
}

// Some minutes of work, in steps of some milliseconds.
MusicRequest long_song() {
  MusicRequest request = song();
  request.duration = 20;
  request.inference_steps = 100;
  request.synth_batch_size = 9;
  return request;
}

TEST_F(MusicServiceTiny, ACancelTakesEffectWithinAStep) {
  const auto music = open();
  const auto job = music->submit({MusicTask::kSynth, "", {long_song()}, {}});
  ASSERT_TRUE(job.ok()) << job.error().message;
  const std::string id = job->record.id;
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (music->job(id, "")->progress.stage != "diffusion" && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(milliseconds(1));
  const JobStatus before = *music->job(id, "");
  EXPECT_EQ(before.record.state, JobState::kRunning);
  EXPECT_EQ(before.progress.steps, 100U);
  ASSERT_TRUE(music->cancel(id, "").ok());
  EXPECT_EQ(music->wait(id, "", kSoon)->record.state, JobState::kCancelled);
  EXPECT_FALSE(music->results(id, "").ok());
  EXPECT_EQ(make(*music, {MusicTask::kSynth, "", {song()}, {}}).size(), 2U);
}

TEST_F(MusicServiceTiny, JobsSurviveTheirService) {
  const TempFolder folder;
  MusicServiceOptions durable = tiny();
  durable.jobs.folder = folder.path() / "jobs";
  std::string done, cut, waiting;
  {
    const auto music = open(durable);
    done = end_of(*music, {MusicTask::kSynth, "", {song()}, {}}).record.id;
    cut = music->submit({MusicTask::kSynth, "", {long_song()}, {}})->record.id;
    waiting = music->submit({MusicTask::kCompose, "", {song()}, {}})->record.id;
    while (music->job(cut, "")->record.state == JobState::kQueued) std::this_thread::sleep_for(milliseconds(1));
  }
  const auto music = open(durable);
  EXPECT_EQ(music->results(done, "")->size(), 2U);
  EXPECT_FALSE(has_ended(music->job(cut, "")->record.state));
  ASSERT_TRUE(music->cancel(cut, "").ok());
  EXPECT_EQ(music->wait(waiting, "", kSoon)->record.state, JobState::kDone);
}

}  // namespace
}  // namespace hocket::test
