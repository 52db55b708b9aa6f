#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "music/goldens.h"
#include "music/pipelines/prompts.h"
#include "music/pipelines/synth_plan.h"
#include "music/pipelines/track_batch.h"
#include "music/request.h"

namespace hocket {
namespace {

using test::value_or_fail;

TEST(MusicRequest, ParsesAndWritesLikeEveryGolden) {
  for (const auto& golden : test::music_json("requests.json")) {
    const std::string note = golden["note"];
    const MusicRequest request = value_or_fail(parse_music_request(golden["request_text"].get<std::string>()));
    // What the golden says in full must be what was read.
    EXPECT_EQ(request, value_or_fail(parse_music_request(golden["fields"].dump()))) << note;
    const auto sparse = nlohmann::json::parse(music_request_json(request));
    EXPECT_EQ(sparse.size(), golden["sparse"].size()) << note;
    for (const auto& [name, value] : golden["sparse"].items()) {
      ASSERT_TRUE(sparse.contains(name)) << note << " " << name;
      if (value.is_number_float()) {
        EXPECT_EQ(static_cast<float>(sparse[name].get<double>()), static_cast<float>(value.get<double>())) << name;
      } else {
        EXPECT_EQ(sparse[name], value) << note << " " << name;
      }
    }
    EXPECT_EQ(value_or_fail(parse_music_request(music_request_json(request))), request) << note;
  }
}

TEST(MusicRequest, ReadsEveryFieldOfTheGolden) {
  // Parsing "fields" must reach each member: writing it again with other defaults shows all of them.
  const auto golden = test::music_json("requests.json")[2];
  MusicRequest odd;
  odd.caption = odd.lyrics = odd.audio_codes = odd.keyscale = odd.timesignature = odd.vocal_language = "?";
  odd.bpm = odd.lm_batch_size = odd.lm_top_k = odd.inference_steps = odd.stork_substeps = odd.synth_batch_size = 77;
  odd.peak_clip = odd.mp3_bitrate = 77;
  odd.seed = odd.lm_seed = 77;
  odd.duration = odd.lm_temperature = odd.lm_cfg_scale = odd.lm_top_p = odd.guidance_scale = odd.shift = 7.5f;
  odd.use_cot_caption = false;
  EXPECT_TRUE(value_or_fail(parse_music_request(R"({"lm_exact_duration":true})")).lm_exact_duration);
  const MusicRequest read = value_or_fail(parse_music_request(golden["fields"].dump(), odd));
  EXPECT_EQ(read, value_or_fail(parse_music_request(golden["fields"].dump())));
}

TEST(SynthPlan, ResolvesLikeEveryGolden) {
  for (const auto& golden : test::music_json("requests.json")) {
    const std::string note = golden["note"];
    const auto& expected = golden["synth"];
    const MusicRequest request = value_or_fail(parse_music_request(golden["request_text"].get<std::string>()));
    SourceLength source{golden.value("source_samples", int64_t{0}), golden.value("source_frames", int64_t{0})};
    const auto codes = parse_audio_codes(request.audio_codes);
    const auto made = plan_synth(request, codes.size(), source, {golden["family"] == "turbo", 2, 15'000, true});
    ASSERT_TRUE(made.ok()) << note << ": " << made.error().message;
    const SynthPlan& plan = *made;
    EXPECT_EQ(codes.size(), expected["codes"].get<std::size_t>()) << note;
    EXPECT_EQ(plan.steps, expected["steps"].get<int>()) << note;
    EXPECT_EQ(plan.guidance, expected["guidance"].get<float>()) << note;
    EXPECT_EQ(plan.guided, expected["guided"].get<bool>()) << note;
    EXPECT_EQ(plan.shift, expected["shift"].get<float>()) << note;
    EXPECT_EQ(plan.n_frames, expected["T"].get<int64_t>()) << note;
    EXPECT_EQ(plan.duration_s, expected["duration"].get<float>()) << note;
    EXPECT_EQ(plan.instruction, expected["instruction"].get<std::string>()) << note;
    EXPECT_EQ(plan.switch_step.has_value(), !expected["switch_step"].is_null()) << note;
    if (plan.switch_step) {
      EXPECT_EQ(*plan.switch_step, expected["switch_step"].get<std::size_t>()) << note;
    }
    const auto schedule = expected["schedule"].get<std::vector<float>>();
    EXPECT_LE(test::relative_error(plan.schedule, schedule), 1e-7) << note;
    EXPECT_EQ(plan.schedule.size(), schedule.size()) << note;
    EXPECT_EQ(plan.from_region, expected.contains("region")) << note;
    if (plan.from_region) {
      EXPECT_EQ((std::vector<int64_t>{plan.region_first, plan.region_last}),
                expected["region"].get<std::vector<int64_t>>())
          << note;
      EXPECT_EQ((std::vector<int64_t>{plan.pad_before, plan.pad_after}),
                expected["padding"].get<std::vector<int64_t>>())
          << note;
    }
    EXPECT_EQ(text_prompt(request, plan.instruction, plan.duration_s), expected["text_prompt"].get<std::string>())
        << note;
    EXPECT_EQ(lyric_prompt(request), expected["lyric_prompt"].get<std::string>()) << note;
  }
}

TEST(SynthPlan, RefusesWhatCannotWork) {
  const auto error = [](const char* json, SourceLength source, int64_t max_frames = 15'000) {
    const auto plan = plan_synth(value_or_fail(parse_music_request(json)), 0, source, {false, 2, max_frames, true});
    return plan.ok() ? std::string("none") : plan.error().param;
  };
  EXPECT_EQ(error(R"({"task_type":"cover"})", {}), "task_type");
  EXPECT_EQ(error(R"({"task_type":"cover"})", {1919, 0}), "audio");
  EXPECT_EQ(error(R"({"task_type":"repaint","repainting_start":2,"repainting_end":1})", {0, 100}), "repainting_end");
  EXPECT_EQ(error(R"({"task_type":"repaint","repainting_start":9})", {0, 100}), "repainting_end");
  EXPECT_EQ(error(R"({"custom_timesteps":"0.5,0.7,0"})", {}), "custom_timesteps");
  EXPECT_EQ(error(R"({"custom_timesteps":"1.5,0.7,0"})", {}), "custom_timesteps");
  EXPECT_EQ(error(R"({"duration":41})", {}, 1024), "duration");
  EXPECT_EQ(error(R"({"duration":0.01})", {}), "duration");
  EXPECT_EQ(error(R"({"duration":40})", {}, 1024), "none");
}

TEST(MusicRequest, ChecksRangesByField) {
  const struct {
    const char* json;
    const char* field;
  } rows[] = {{R"({"duration":601})", "duration"},
              {R"({"duration":-1})", "duration"},
              {R"({"peak_clip":1000})", "peak_clip"},
              {R"({"stork_substeps":1})", "stork_substeps"},
              {R"({"inference_steps":-1})", "inference_steps"},
              {R"({"audio_codes":"1,-2"})", "audio_codes"},
              {R"({"audio_codes":"65535"})", "audio_codes"},
              {R"({"solver":"magic"})", "solver"},
              {R"({"dcw_mode":"magic"})", "dcw_mode"},
              {R"({"task_type":"magic"})", "task_type"},
              {R"({"lm_mode":"magic"})", "lm_mode"},
              {R"({"output_format":"magic"})", "output_format"},
              {R"({"mp3_bitrate":100})", "mp3_bitrate"},
              {R"({"seed":4294967296})", "seed"},
              {R"({"seed":1e300})", "seed"},
              {R"({"synth_batch_size":10})", "synth_batch_size"},
              {R"({"shift":1e39})", "shift"},
              {R"({"repainting_start":-1e30})", "repainting_start"},
              {R"({"repainting_end":1e30})", "repainting_end"},
              {R"({"audio_cover_strength":1.5})", "audio_cover_strength"}};
  for (const auto& row : rows) {
    const auto checked = value_or_fail(parse_music_request(row.json)).check();
    ASSERT_FALSE(checked.ok()) << row.json;
    EXPECT_EQ(checked.error().param, row.field) << row.json;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(value_or_fail(parse_music_request(R"({"audio_codes":"0,65534","seed":4294967295})")).check().ok());
}

TEST(MusicRequest, RefusesWhatIsNoObject) {
  for (const char* json : {"", "[]", "[1]", "3", "\"x\"", "{", "[{},2]", "null"})
    EXPECT_FALSE(parse_music_requests(json).ok()) << json;
  EXPECT_FALSE(parse_music_request("[]").ok());
  EXPECT_EQ(value_or_fail(parse_music_requests(R"([{"seed":1},{"seed":2}])")).size(), 2u);
}

TEST(MusicRequest, SurvivesRandomValues) {
  std::mt19937 random(11);
  const char* names[] = {"caption",         "seed",           "bpm",        "duration", "solver",
                         "use_cot_caption", "stork_substeps", "audio_codes"};
  const char* values[] = {"1e999",
                          "-9223372036854775808",
                          "18446744073709551615",
                          "null",
                          "[[[]]]",
                          "{}",
                          "\"\\u0000\"",
                          "true",
                          "-0.0",
                          "1e-320",
                          "\"99999999999999999999\""};
  for (int i = 0; i < 500; ++i) {
    const std::string json = fmt::format(R"({{"{}":{},"{}":{}}})", names[random() % 8], values[random() % 11],
                                         names[random() % 8], values[random() % 11]);
    const auto request = parse_music_request(json);
    if (!request.ok()) continue;
    (void)request->check();
    EXPECT_TRUE(parse_music_request(music_request_json(*request)).ok()) << json;
  }
}

TEST(TrackBatch, ExpandsSeedsAndRefusesMixedBatches) {
  const auto tracks = value_or_fail(expand_tracks(value_or_fail(
      parse_music_requests(R"([{"caption":"a","seed":4294967295,"synth_batch_size":2},{"caption":"b","seed":7}])"))));
  ASSERT_EQ(tracks.size(), 3u);
  EXPECT_EQ(tracks[0].seed, 4'294'967'295);
  EXPECT_EQ(tracks[1].seed, 0);
  EXPECT_EQ(tracks[2].seed, 7);
  const auto field = [](const char* json) {
    const auto made = expand_tracks(value_or_fail(parse_music_requests(json)));
    return made.ok() ? std::string("none") : made.error().param;
  };
  EXPECT_EQ(field(R"([{"caption":"a"},{"caption":""}])"), "caption");
  EXPECT_EQ(field(R"([{"caption":"a"},{"caption":"b","duration":20}])"), "duration");
  EXPECT_EQ(field(R"([{"caption":"a"},{"caption":"b","solver":"sde"}])"), "solver");
  EXPECT_EQ(field(R"([{"caption":"a","synth_batch_size":5},{"caption":"b","synth_batch_size":5}])"),
            "synth_batch_size");
  EXPECT_EQ(field(R"({"caption":"","task_type":"lego"})"), "none");
  const int64_t drawn = value_or_fail(expand_tracks(value_or_fail(parse_music_requests(R"({"caption":"a"})"))))[0].seed;
  EXPECT_GE(drawn, 0);
}

}  // namespace
}  // namespace hocket
