#include <gtest/gtest.h>

#include "music/dit/dit.h"
#include "music/goldens.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

struct Sample {
  std::vector<float> velocity;
  Taps taps;
};

Sample run_case(const Golden& golden, int n_threads = 1) {
  const auto dit =
      value_or_fail(Dit::load(value_or_fail(DitFile::open(golden.model())), test::test_compute(n_threads)));
  DitShape shape;
  shape.n_frames = golden.shape("x")[1];
  shape.enc_lengths = golden.params()["encoder_lengths"].get<std::vector<int64_t>>();
  shape.n_enc_rows = golden.shape("enc")[1];
  Sample sample;
  const auto pass = value_or_fail(DitPass::create(*dit, shape, &sample.taps));
  pass->set_context(golden.floats("context"));
  pass->set_conditioning(golden.floats("enc"));
  const float t = golden.params()["t"].get<float>();
  // A pass is used for many steps: nothing may be left of another one.
  value_or_fail(pass->run(std::vector<float>(golden.floats("x").size(), 0.5f), 0.4f, CancelToken()));
  sample.velocity = value_or_fail(pass->run(golden.floats("x"), t, CancelToken()));
  return sample;
}

TEST(Dit, GivesTheGoldenVelocity) {
  for (const char* name : {"dit-t1", "dit-t03-batch2", "dit-short", "dit-null", "dit-base-cls"}) {
    const Golden golden(name);
    const Sample sample = run_case(golden);
    EXPECT_EQ(sample.velocity.size(), golden.floats("velocity").size());
    EXPECT_LE(relative_error(sample.velocity, golden.floats("velocity")), golden.tolerance("velocity")) << name;
    test::expect_taps(golden, sample.taps);
  }
}

TEST(Dit, TapsCoverEveryGoldenIntermediate) {
  const Golden golden("dit-t1");
  const Sample sample = run_case(golden, 2);  // how the work is divided does not matter either
  EXPECT_LE(relative_error(sample.velocity, golden.floats("velocity")), golden.tolerance("velocity"));
  for (const std::string& name : golden.names("intermediate")) EXPECT_TRUE(sample.taps.contains(name)) << name;
}

TEST(Dit, RefusesShapesAndStopsWhenCancelled) {
  const auto dit = value_or_fail(
      Dit::load(value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf"))), test::test_compute()));
  EXPECT_FALSE(DitPass::create(*dit, {25, {4}, 4}).ok());  // no multiple of the patch
  EXPECT_FALSE(DitPass::create(*dit, {26, {5}, 4}).ok());
  EXPECT_FALSE(DitPass::create(*dit, {26, {}, 4}).ok());
  const auto pass = value_or_fail(DitPass::create(*dit, {26, {4}, 4}));
  pass->set_context(std::vector<float>(26 * 128));
  pass->set_conditioning(std::vector<float>(4 * 48));
  const CancelToken cancel;
  cancel.cancel();
  const auto stopped = pass->run(std::vector<float>(26 * 64), 1.0f, cancel);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace hocket
