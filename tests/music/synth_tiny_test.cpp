#include <fmt/format.h>
#include <gtest/gtest.h>

#include "audio/read.h"
#include "music/dit/dit.h"
#include "music/goldens.h"
#include "music/model_file.h"
#include "music/pipelines/context.h"
#include "music/pipelines/synth.h"
#include "music/solvers/noise.h"
#include "music/solvers/sampler.h"
#include "music/vae/vae_decoder.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

std::unique_ptr<SynthPipeline> pipeline(const char* dit = "models/dit-turbo.gguf") {
  return value_or_fail(SynthPipeline::open(
      {test::music_data("models/text-encoder.gguf"), test::music_data(dit), test::music_data("models/vae.gguf")},
      test::test_compute()));
}

MusicRequest request(const std::string& json) {
  return value_or_fail(parse_music_request(json));
}

std::vector<float> planar(const StereoAudio& audio) {
  std::vector<float> samples = audio.left;
  samples.insert(samples.end(), audio.right.begin(), audio.right.end());
  return samples;
}

TEST(SynthContext, IsTheGoldenForEveryTask) {
  const auto dit = value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf")));
  EXPECT_EQ(silent_context(*dit, 26), Golden("context-text2music").floats("context"));
  const Golden codes("context-codes-short");
  EXPECT_EQ(code_context(*dit, 40, codes.floats("decoded")), codes.floats("context"));
  for (const char* name : {"context-cover", "context-repaint", "context-lego-region", "context-repaint-outpaint",
                           "context-repaint-prepend"}) {
    const Golden golden(name);
    MusicRequest r;
    r.task_type = golden.params().contains("repainting_start") ? "repaint" : "cover-nofsq";
    if (std::string(name) == "context-lego-region") r.task_type = "lego";
    r.repainting_start = golden.params().value("repainting_start", 0.0f);
    r.repainting_end = golden.params().value("repainting_end", -1.0f);
    const auto source = golden.floats("source");
    const SynthPlan plan = value_or_fail(plan_synth(r, 0, {0, 25}, {true, 2, 1024, true}));
    if (golden.params().contains("region")) {
      EXPECT_EQ(plan.region_first, golden.params()["region"][0].get<int64_t>()) << name;
      EXPECT_EQ(plan.region_last, golden.params()["region"][1].get<int64_t>()) << name;
    }
    EXPECT_EQ(plan.pad_before, golden.params().value("left_pad", 0)) << name;
    const auto padded = pad_latent(*dit, source, plan.pad_before, plan.pad_after);
    EXPECT_EQ(source_context(*dit, plan, r.task_type == "repaint", padded), golden.floats("context")) << name;
  }
}

TEST(Sampler, FollowsGoldenTrajectoriesWithTheNetwork) {
  const auto file = value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf")));
  const auto dit = value_or_fail(Dit::load(file, test::test_compute()));
  for (const char* name : {"sample-euler", "sample-stork4", "sample-dcw-double"}) {
    const Golden golden(name);
    const auto& params = golden.params();
    DitShape shape{26, params["encoder_lengths"].get<std::vector<int64_t>>(), golden.shape("enc")[1]};
    const auto pass = value_or_fail(DitPass::create(*dit, shape));
    pass->set_context(golden.floats("context"));
    pass->set_conditioning(golden.floats("enc"));
    SamplerOptions options;
    options.schedule = golden.floats("schedule");
    options.solver = *parse_solver(params.value("solver", "euler"));
    options.wavelet = {*parse_wavelet_mode(params.value("dcw_mode", "low")), params.value("dcw_scaler", 0.0f),
                       params.value("dcw_high", 0.0f)};
    options.seeds = params["seeds"].get<std::vector<uint64_t>>();
    const auto x0 = value_or_fail(sample_latents(
        options, golden.floats("start"),
        [&](std::span<const float> x, float t, std::size_t) { return pass->run(x, t, CancelToken()); }, {},
        CancelToken()));
    EXPECT_LE(relative_error(x0, golden.floats("x0")), golden.tolerance("x0")) << name;
  }
}

TEST(Synth, MakesTheGoldenSongFromWords) {
  const Golden golden("pipeline-text2music");
  SynthJob job;
  job.requests = {request(golden.params()["request"].dump())};
  std::vector<std::string> stages;
  const auto tracks = value_or_fail(pipeline()->run(
      job,
      [&](const MusicProgress& p) {
        EXPECT_LE(p.step, p.steps);
        if (stages.empty() || stages.back() != p.stage) stages.emplace_back(p.stage);
      },
      CancelToken()));
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_LE(relative_error(tracks[0].latent, golden.floats("latent")), golden.tolerance("latent"));
  EXPECT_EQ(planar(tracks[0].audio).size(), golden.floats("audio").size());
  EXPECT_LE(relative_error(planar(tracks[0].audio), golden.floats("audio")), 2e-4);
  EXPECT_EQ(stages, (std::vector<std::string>{"text", "diffusion", "decode"}));
}

TEST(Synth, RepaintsTheGoldenRegionAndKeepsEverySampleAround) {
  const Golden golden("pipeline-repaint");
  SynthJob job;
  job.requests = {request(golden.params()["request"].dump())};
  const auto samples = golden.floats("source");
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    job.source.audio.left.push_back(samples[i]);
    job.source.audio.right.push_back(samples[i + 1]);
  }
  const auto tracks = value_or_fail(pipeline()->run(job, {}, CancelToken()));
  const SynthTrack& track = tracks.at(0);
  EXPECT_LE(relative_error(track.latent, golden.floats("latent")), golden.tolerance("latent"));
  EXPECT_LE(relative_error(planar(track.audio), golden.floats("audio")), golden.tolerance("audio"));
  for (std::size_t i = 0; i < track.audio.n_samples(); ++i)
    if (i < 7 * 1920 || i >= 15 * 1920) {
      ASSERT_EQ(track.audio.left[i], job.source.audio.left[i]) << i;
    }
}

TEST(Synth, EveryTaskRunsAndTwoTracksEqualTwoRuns) {
  const auto synth = pipeline();
  const auto latent = Golden("context-cover").floats("source");
  for (const char* task : {"cover", "cover-nofsq", "repaint", "lego", "extract", "complete"}) {
    SynthJob job;
    job.requests = {request(fmt::format(
        R"({{"caption":"x","task_type":"{}","seed":3,"inference_steps":2,"audio_cover_strength":0.5,
            "repainting_start":0.2,"repainting_end":0.6,"cover_noise_strength":0.1,"guidance_scale":2}})",
        task))};
    job.source.latent = latent;
    const auto made = synth->run(job, {}, CancelToken());
    ASSERT_TRUE(made.ok()) << task << ": " << made.error().message;
    EXPECT_EQ(made->at(0).latent.size(), 26u * 64) << task;
    EXPECT_EQ(made->at(0).audio.n_samples(), 26u * 1920) << task;
  }
  SynthJob pair;
  pair.requests = {request(R"({"caption":"x","lyrics":"a much longer text than the other","seed":1,"inference_steps":2,
                               "audio_codes":"5,600","duration":10})"),
                   request(R"({"caption":"y","seed":2,"inference_steps":2,"audio_codes":"7,8,9","duration":10})")};
  const auto both = value_or_fail(synth->run(pair, {}, CancelToken()));
  ASSERT_EQ(both.size(), 2u);
  SynthJob alone;
  alone.requests = {pair.requests[1]};
  const auto one = value_or_fail(synth->run(alone, {}, CancelToken()));
  EXPECT_LE(relative_error(both[1].latent, one[0].latent), 1e-4);
  EXPECT_EQ(planar(one[0].audio), planar(value_or_fail(synth->run(alone, {}, CancelToken()))[0].audio));
}

SynthMemory planned(const SynthJob& job, const char* dit = "models/dit-turbo.gguf") {
  return value_or_fail(SynthPipeline::plan_memory(
      {test::music_data("models/text-encoder.gguf"), test::music_data(dit), test::music_data("models/vae.gguf")},
      test::test_compute(), job, CancelToken()));
}

std::vector<std::string> names_of(const SynthMemory& memory) {
  std::vector<std::string> names;
  for (const NetworkMemory& network : memory.networks) names.push_back(network.network);
  return names;
}

TEST(Synth, PlansTheMemoryOfEveryNetworkWithoutLoadingIt) {
  const MusicCompute compute = test::test_compute();
  SynthJob job;
  job.requests = {request(R"({"caption":"x","lyrics":"y","seed":1,"duration":2})")};
  const SynthMemory memory = planned(job);
  EXPECT_EQ(names_of(memory),
            (std::vector<std::string>{"text encoder", "condition encoder", "transformer", "VAE decoder"}));
  const auto dit =
      value_or_fail(Dit::load(value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf"))), compute));
  const auto vae = value_or_fail(VaeDecoder::load(
      value_or_fail(open_music_file(test::music_data("models/vae.gguf"), MusicFileKind::kVae)), compute));
  EXPECT_EQ(memory.networks[2].weight_bytes, dit->weight_bytes());
  EXPECT_EQ(memory.networks[3].weight_bytes, vae->weight_bytes());
  // The conditioning has a row for each token, and one for the timbre.
  const std::size_t least = value_or_fail(DitPass::create(*dit, {50, {1}, 1}))->compute_bytes();
  const std::size_t most = value_or_fail(DitPass::create(*dit, {50, {1024}, 1024}))->compute_bytes();
  EXPECT_GE(memory.networks[2].compute_bytes, least);
  EXPECT_LE(memory.networks[2].compute_bytes, 2 * most);
  EXPECT_GT(memory.total_bytes(ResidencyPolicy::kKeep), memory.total_bytes(ResidencyPolicy::kStrict));
  EXPECT_GE(memory.sound_bytes, 50u * 1920 * 8);
  for (const NetworkMemory& network : memory.networks) {
    EXPECT_GT(network.compute_bytes, 0u) << network.network;
    EXPECT_GE(memory.total_bytes(ResidencyPolicy::kStrict), network.total_bytes()) << network.network;
  }

  SynthJob longer = job;
  longer.requests[0].duration = 20;
  longer.requests[0].synth_batch_size = 2;
  EXPECT_GT(planned(longer).networks[2].compute_bytes, 4 * memory.networks[2].compute_bytes);
  EXPECT_GE(planned(longer).sound_bytes, 10 * memory.sound_bytes);  // a copy of one track is made at a time
}

TEST(Synth, PlansWhatATaskNeeds) {
  SynthJob job;
  job.requests = {request(R"({"caption":"x","seed":1,"task_type":"cover","guidance_scale":2,"audio_cover_strength":0.5,
                              "dcw_mode":"double","solver":"stork4","inference_steps":3})")};
  job.source.audio.rate_hz = 48000;
  job.source.audio.left.assign(48000, 0.1f);
  job.source.audio.right = job.source.audio.left;
  const SynthMemory memory = planned(job, "models/dit-base-cls.gguf");
  EXPECT_EQ(names_of(memory),
            (std::vector<std::string>{"VAE encoder", "FSQ tokenizer", "FSQ detokenizer", "text encoder",
                                      "condition encoder", "transformer", "VAE decoder"}));
  job.requests[0].custom_timesteps = "0.5,0.7,0";
  const auto refused =
      SynthPipeline::plan_memory({test::music_data("models/text-encoder.gguf"),
                                  test::music_data("models/dit-turbo.gguf"), test::music_data("models/vae.gguf")},
                                 test::test_compute(), job, CancelToken());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "custom_timesteps");
}

TEST(Synth, StopsAtEveryStageAndNamesWhatIsWrong) {
  const auto synth = pipeline();
  SynthJob job;
  job.requests = {request(R"({"caption":"x","duration":1,"seed":1,"inference_steps":3})")};
  for (const std::string stage : {"text", "diffusion", "decode"}) {
    const CancelToken cancel;
    const auto stopped = synth->run(
        job,
        [&](const MusicProgress& p) {
          if (p.stage == stage) cancel.cancel();
        },
        cancel);
    if (stage == "decode") continue;  // its only window is already done
    ASSERT_FALSE(stopped.ok()) << stage;
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled) << stage;
  }
  job.source.latent = std::vector<float>(65);
  EXPECT_EQ(synth->run(job, {}, CancelToken()).error().param, "src_latents");
  job.source.latent.clear();
  job.requests[0].duration = 100;  // the tiny model has 1024 frames of silence
  EXPECT_EQ(synth->run(job, {}, CancelToken()).error().param, "duration");
  job.requests[0].task_type = "cover";
  EXPECT_EQ(synth->run(job, {}, CancelToken()).error().param, "task_type");
}

TEST(Synth, ATrackBecomesAFileThatTellsItsRequest) {
  SynthJob job;
  job.requests = {request(R"({"caption":"x","duration":1,"seed":5,"inference_steps":1,"output_format":"wav16"})")};
  const auto tracks = value_or_fail(pipeline()->run(job, {}, CancelToken()));
  for (const char* format : {"mp3", "wav16", "wav24", "wav32", "flac"}) {
    SynthTrack track = tracks[0];
    track.request.output_format = format;
    const auto bytes = value_or_fail(encode_track(track, CancelToken()));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_NE(text.find("\"seed\": 5"), std::string::npos) << format;
    const auto back = value_or_fail(read_audio(bytes, "track"));
    EXPECT_NEAR(static_cast<double>(back.n_samples()), 49'920, 2 * 1152) << format;
  }
}

TEST(Synth, RefusesFilesOfAnotherKind) {
  const auto swapped =
      SynthPipeline::open({test::music_data("models/vae.gguf"), test::music_data("models/dit-turbo.gguf"),
                           test::music_data("models/vae.gguf")},
                          test::test_compute());
  ASSERT_FALSE(swapped.ok());
  EXPECT_EQ(swapped.error().code, ErrorCode::kBadModel);
}

}  // namespace
}  // namespace hocket
