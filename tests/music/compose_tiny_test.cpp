#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "music/goldens.h"
#include "music/pipelines/compose.h"
#include "music/pipelines/understand.h"
#include "music/planner/answer.h"
#include "music/planner/planner_run.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

const PlannerModel& planner() {
  static const auto model = value_or_fail(
      PlannerModel::load(test::music_data("models/lm.gguf"), {.device = "", .max_seq = 8192, .n_threads = 1}));
  return *model;
}

MusicRequest request(const nlohmann::json& json) {
  return value_or_fail(parse_music_request(json.dump()));
}

TEST(PlannerPrompts, AreTheGoldenIds) {
  const Golden golden("lm-prompts");
  const MusicTokenizer& t = planner().tokenizer();
  const MusicRequest r = request(golden.params()["request"]);
  const auto expect = [&](const char* name, const Result<TokenIds>& ids) {
    EXPECT_EQ(value_or_fail(ids), golden.ints(name)) << name;
  };
  expect("fill", fill_prompt(t, r.caption, r.lyrics));
  expect("fill_uncond_negative", fill_unconditional_prompt(t, "noise", r.lyrics));
  expect("fill_uncond", fill_unconditional_prompt(t, "", r.lyrics));
  expect("inspire", inspire_prompt(t, r.caption, ""));
  expect("inspire_instrumental", inspire_prompt(t, r.caption, "[Instrumental]"));
  expect("format", format_prompt(t, r.caption, r.lyrics));
  expect("codes", codes_prompt(t, r));
  expect("codes_uncond", codes_unconditional_prompt(t, ""));
  expect("codes_uncond_negative", codes_unconditional_prompt(t, "noise"));
  expect("understand", understand_prompt(t, std::vector<int32_t>{5, 42'381, 63'999}));
}

TEST(PlannerRun, GivesTheGoldenLogits) {
  const Golden golden("lm-logits");
  PlannerPrompts prompts;
  prompts.conditional = {golden.ints("prompt")};
  prompts.max_steps = 8;
  const auto run = value_or_fail(PlannerRun::start(planner(), prompts, CancelToken()));
  const auto ids = golden.ints("ids"), steps = golden.ints("steps"), largest = golden.ints("argmax");
  const auto expected = golden.floats("logits");
  for (std::size_t k = 0; k <= steps.size(); ++k) {
    const auto& logits = run->logits(0);
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), largest[k]) << k;
    std::vector<float> some;
    for (const int32_t id : ids) some.push_back(logits[static_cast<std::size_t>(id)]);
    const auto row = expected.begin() + static_cast<std::ptrdiff_t>(k * ids.size());
    EXPECT_LE(relative_error(some, {row, row + static_cast<std::ptrdiff_t>(ids.size())}), golden.tolerance("logits"));
    const PlannerRun::Next next{0, k < steps.size() ? steps[k] : 0};
    ASSERT_TRUE(run->step({&next, 1}, CancelToken()).ok());
  }
}

TEST(MetadataMachine, AllowsTheGoldenSetsBeforeEveryToken) {
  const auto golden = test::music_json("lm-machine.json");
  const MetadataRules& rules = planner().rules();
  const std::pair<const char*, MetadataField> trees[] = {{"bpm", MetadataField::kBpm},
                                                         {"duration", MetadataField::kDuration},
                                                         {"keyscale", MetadataField::kKeyscale},
                                                         {"language", MetadataField::kLanguage},
                                                         {"timesignature", MetadataField::kTimesignature}};
  for (const auto& [name, field] : trees)
    EXPECT_EQ(rules.values(field).size(), golden["node_counts"][name].get<std::size_t>()) << name;

  for (const auto& trace : golden["traces"]) {
    ForcedMetadata forced;
    forced.skip_caption = trace["skip_caption"];
    for (const auto& [name, field] : trees)
      if (trace["forced"].contains(name)) forced.values[static_cast<std::size_t>(field)] = trace["forced"][name];
    MetadataMachine machine = value_or_fail(MetadataMachine::start(planner().shared_rules(), forced));
    std::size_t step = 0;
    for (const auto& s : trace["steps"]) {
      if (s["allowed"].is_string()) {
        EXPECT_EQ(machine.scope(), MetadataMachine::Scope::kText) << trace["name"] << step;
      } else {
        EXPECT_EQ(machine.scope(), MetadataMachine::Scope::kListed) << trace["name"] << step;
        const auto expected = s["allowed"].get<std::set<TokenId>>();
        EXPECT_EQ(machine.allowed(), expected) << trace["name"] << step;
      }
      machine.accept(s["token"]);
      ++step;
    }
    EXPECT_EQ(machine.scope() == MetadataMachine::Scope::kFree, trace["finished"].get<bool>()) << trace["name"];
  }
}

TEST(MetadataMachine, AnyLogitsGiveAHeaderThatReadsBack) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    MusicRequest given;
    if (round % 2 == 0) given.bpm = 123;
    if (round % 3 == 0) given.keyscale = "Q minor";
    MetadataMachine machine =
        value_or_fail(MetadataMachine::start(planner().shared_rules(), ForcedMetadata::of(given, true)));
    TokenIds tokens;
    while (machine.scope() != MetadataMachine::Scope::kFree) {
      ASSERT_EQ(machine.scope(), MetadataMachine::Scope::kListed);
      ASSERT_LT(tokens.size(), 500u);
      auto choice = machine.allowed().begin();
      std::advance(choice, random() % machine.allowed().size());
      std::vector<float> logits(static_cast<std::size_t>(kFirstAudioCode) + 10, 1.0f);
      machine.mask(logits);
      ASSERT_EQ(logits[static_cast<std::size_t>(*choice)], 1.0f);
      ASSERT_EQ(std::count(logits.begin(), logits.end(), 1.0f), static_cast<std::ptrdiff_t>(machine.allowed().size()));
      tokens.push_back(*choice);
      machine.accept(tokens.back());
    }
    const PlannerAnswer answer = parse_answer(planner().tokenizer().decode(tokens));
    EXPECT_GE(answer.bpm, 30);
    if (given.bpm > 0) {
      EXPECT_EQ(answer.bpm, 123);
    }
    if (!given.keyscale.empty()) {
      EXPECT_EQ(answer.keyscale, "Q minor");
    }
    EXPECT_GE(answer.duration, 10);
    EXPECT_FALSE(answer.timesignature.empty());
  }
}

TEST(Compose, WritesTheGoldenMetadata) {
  for (const char* name :
       {"lm-phase1-greedy-locked", "lm-phase1-guided-locked", "lm-phase1-lyrics", "lm-phase1-format"}) {
    const Golden golden(name);
    nlohmann::json body = golden.params()["request"];
    // Phase 2 is another test's: a request whose mode ends after phase 1 says the same tokens, but for the prompt.
    MusicRequest asked = request(body);
    if (golden.params()["mode"] == "format") asked.lm_mode = "format";
    asked.seed = 0;
    ComposeTrace trace;
    CancelToken cancel;
    const auto stop_at_codes = [&](const MusicProgress& p) {
      if (p.stage == "codes") cancel.cancel();
    };
    const auto made = compose(planner(), {asked}, stop_at_codes, cancel, &trace);
    ASSERT_EQ(trace.metadata_tokens.size(), 1u);
    EXPECT_EQ(trace.metadata_tokens[0], golden.ints("tokens")) << name;
    const std::string text = planner().tokenizer().decode(trace.metadata_tokens[0]);
    EXPECT_EQ(text, golden.params()["text"].get<std::string>()) << name;
    if (!made.ok()) {
      EXPECT_EQ(made.error().code, ErrorCode::kCancelled) << name << made.error().message;
      continue;
    }
    const auto& merged = golden.params()["merged"];
    EXPECT_EQ(made->at(0).bpm, merged["bpm"].get<int>()) << name;
    EXPECT_EQ(made->at(0).duration, merged["duration"].get<float>()) << name;
    EXPECT_EQ(made->at(0).keyscale, merged["keyscale"].get<std::string>()) << name;
    EXPECT_EQ(made->at(0).lyrics, merged["lyrics"].get<std::string>()) << name;
    EXPECT_EQ(made->at(0).vocal_language, merged["vocal_language"].get<std::string>()) << name;
  }
}

TEST(Compose, WritesTheGoldenCodes) {
  for (const char* name : {"lm-phase2-greedy", "lm-phase2-greedy-guided", "lm-phase2-sampled-topk",
                           "lm-phase2-sampled-topp", "lm-phase2-sampled-guided"}) {
    const Golden golden(name);
    const auto expected = golden.ints("codes");
    MusicRequest asked = request(golden.params()["request"]);
    asked.seed = 0;
    ComposeTrace trace;
    const auto made = value_or_fail(compose(planner(), {asked}, {}, CancelToken(), &trace));
    ASSERT_GE(trace.codes.at(0).size(), expected.size()) << name;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), trace.codes[0].begin())) << name;
    EXPECT_LE(trace.codes[0].size(), 151u) << name;  // 5 a second, 100 to spare, and the first
    EXPECT_EQ(parse_audio_codes(made.at(0).audio_codes).size(), trace.codes[0].size());
  }
}

TEST(Compose, WritesAsManyCodesAsTheDurationAsksFor) {
  const Golden golden("lm-phase2-sampled-guided");
  MusicRequest asked = request(golden.params()["request"]);
  asked.lm_exact_duration = true;
  asked.lm_batch_size = 2;
  asked.lm_temperature = 3;  // the end is as likely as any code
  for (const float seconds : {0.2f, 2.0f, 7.3f}) {
    asked.duration = seconds;
    const auto made = value_or_fail(compose(planner(), {asked}, {}, CancelToken()));
    for (const MusicRequest& one : made)
      EXPECT_EQ(parse_audio_codes(one.audio_codes).size(), static_cast<std::size_t>(seconds * 5)) << seconds;
  }
}

TEST(Compose, ThinksFirstWhereThatIsAsked) {
  const Golden golden("lm-phase2-sampled-guided");
  MusicRequest asked = request(golden.params()["request"]);
  asked.lm_mode = "format";  // no codes
  asked.bpm = 0;
  asked.lm_temperature = 2;
  const MusicTokenizer& tokenizer = planner().tokenizer();
  int n_changed = 0;
  for (asked.lm_seed = 1; asked.lm_seed <= 4; ++asked.lm_seed) {
    MusicRequest thinking = asked;
    thinking.lm_force_think = true;
    EXPECT_EQ(value_or_fail(compose_size(tokenizer, {thinking})).n_tokens,
              value_or_fail(compose_size(tokenizer, {asked})).n_tokens + 2);
    ComposeTrace with, without;
    ASSERT_TRUE(compose(planner(), {asked}, {}, CancelToken(), &without).ok());
    ASSERT_TRUE(compose(planner(), {thinking}, {}, CancelToken(), &with).ok());
    // The machine begins at the first field in any case.
    EXPECT_TRUE(tokenizer.decode(with.metadata_tokens.at(0)).starts_with("bpm:"));
    n_changed += with.metadata_tokens != without.metadata_tokens ? 1 : 0;
  }
  EXPECT_GT(n_changed, 0) << "the model did not see that it thinks";
}

TEST(Compose, VariationsOfABatchEqualTheirSingleRuns) {
  const Golden golden("lm-phase2-sampled-guided");
  MusicRequest asked = request(golden.params()["request"]);
  asked.seed = 5;
  asked.duration = 2;
  asked.lm_batch_size = 3;
  const auto batch = value_or_fail(compose(planner(), {asked}, {}, CancelToken()));
  ASSERT_EQ(batch.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    MusicRequest one = asked;
    one.lm_batch_size = 1;
    one.seed += i;
    one.lm_seed += i;
    const auto alone = value_or_fail(compose(planner(), {one}, {}, CancelToken()));
    EXPECT_EQ(batch[static_cast<std::size_t>(i)], alone[0]) << i;
  }
}

TEST(Compose, PassesCodesThroughAndRefuses) {
  MusicRequest given;
  given.caption = "x";
  given.audio_codes = "1,2,3";
  const auto through = value_or_fail(compose(planner(), {given}, {}, CancelToken()));
  EXPECT_EQ(through.at(0).audio_codes, "1,2,3");
  EXPECT_GE(through[0].seed, 0);
  EXPECT_FALSE(compose(planner(), {MusicRequest()}, {}, CancelToken()).ok());  // no caption
  given.lm_batch_size = 10;
  EXPECT_EQ(compose(planner(), {given}, {}, CancelToken()).error().param, "lm_batch_size");
  given.lm_batch_size = 1;
  MusicRequest other = given;
  other.lm_mode = "inspire";
  EXPECT_EQ(compose(planner(), {given, other}, {}, CancelToken()).error().param, "lm_mode");
  MusicRequest endless;
  endless.caption = std::string(9000, 'x');
  const auto refused = compose(planner(), {endless}, {}, CancelToken());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

TEST(ComposePlan, FollowsEveryGolden) {
  for (const auto& golden : test::music_json("requests.json")) {
    const auto& lm = golden["lm"];
    const ComposePlan plan =
        plan_compose(value_or_fail(parse_music_request(golden["request_text"].get<std::string>())));
    const std::string note = golden["note"];
    EXPECT_EQ(plan.metadata, lm["phase1"].get<bool>()) << note;
    EXPECT_EQ(plan.codes, lm["phase2"].get<bool>()) << note;
    if (!plan.metadata) continue;
    const char* names[] = {"P-fill", "P-inspire", "P-format"};
    EXPECT_EQ(names[static_cast<int>(plan.prompt)], lm["prompt"]) << note;
    EXPECT_EQ(plan.writes_lyrics, lm["writes_lyrics"].get<bool>()) << note;
    EXPECT_EQ(plan.guidance, lm["guidance"].get<float>()) << note;
    EXPECT_EQ(plan.skip_caption, lm["skip_caption"].get<bool>()) << note;
  }
}

TEST(Understand, DescribesALatentByAForcedHeader) {
  const Golden golden("fsq-tokenize");
  const auto dit = value_or_fail(DitFile::open(golden.model()));
  SynthSound sound;
  sound.latent = golden.floats("latents");
  Residency models(ResidencyPolicy::kStrict);
  const auto song = value_or_fail(hear(dit, "", sound, {}, test::test_compute(), models, {}, CancelToken()));
  EXPECT_EQ(song.codes, golden.ints("codes"));
  MusicRequest asked = understand_defaults();
  EXPECT_EQ(asked.lm_temperature, 0.3f);
  asked.lm_seed = 3;
  const CancelToken cancel;
  std::size_t n = 0;
  // The tiny model rambles inside a caption: it is stopped after some words.
  const auto heard = understand(
      planner(), song.codes, asked,
      [&](const MusicProgress& p) {
        n = p.step;
        if (n == 40) cancel.cancel();
      },
      cancel);
  if (heard.ok()) {
    EXPECT_EQ(heard->audio_codes, audio_codes_text(song.codes));
    EXPECT_EQ(heard->lm_seed, 3);
  } else {
    EXPECT_EQ(heard.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(n, 40u);
  }
  EXPECT_FALSE(hear(dit, "", {}, {}, test::test_compute(), models, {}, CancelToken()).ok());
}

}  // namespace
}  // namespace hocket
