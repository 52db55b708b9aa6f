// Who takes part in a step: decoding first, prompts in turns, nobody starves.
#include "runtime/lanes/step_planner.h"

#include <gtest/gtest.h>

namespace hocket {
namespace {

using Kind = StepWish::Kind;

class StepPlannerTest : public ::testing::Test {
 protected:
  static LaneWish decode(uint64_t lane, std::size_t n = 1) {
    return {{Kind::kDecode, n, StepOutput::kLogits}, "", lane};
  }
  static LaneWish chunk(uint64_t lane, std::size_t n, const std::string& tenant = "",
                        StepOutput output = StepOutput::kLogits) {
    return {{Kind::kPrefill, n, output}, tenant, lane};
  }
  static LaneWish nothing(uint64_t lane) { return {{}, "", lane}; }

  StepPlanner planner_{100};
};

using Chosen = std::vector<std::size_t>;

TEST_F(StepPlannerTest, NobodyWantsAnything) {
  EXPECT_TRUE(planner_.choose({}).empty());
  EXPECT_TRUE(planner_.choose({nothing(1), nothing(2)}).empty());
}

TEST_F(StepPlannerTest, DecodingAndOneChunkShareAStep) {
  EXPECT_EQ(planner_.choose({chunk(1, 50), decode(2), chunk(3, 20), decode(4, 5)}), (Chosen{0, 1, 3}));
  // The other prompt is next.
  EXPECT_EQ(planner_.choose({chunk(1, 50), decode(2), chunk(3, 20), decode(4, 5)}), (Chosen{1, 2, 3}));
}

TEST_F(StepPlannerTest, ChunksFillTheStepWhenNobodyDecodes) {
  EXPECT_EQ(planner_.choose({chunk(1, 60), chunk(2, 60), chunk(3, 40)}), (Chosen{0, 2}));
  EXPECT_EQ(planner_.choose({chunk(1, 60), chunk(2, 60), chunk(3, 40)}), (Chosen{1, 2}));
}

TEST_F(StepPlannerTest, AChunkThatDoesNotFitTakesTurnsWithDecoding) {
  const std::vector<LaneWish> wishes{decode(1), chunk(2, 100), decode(3)};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(planner_.choose(wishes), (Chosen{1})) << i;
    EXPECT_EQ(planner_.choose(wishes), (Chosen{0, 2})) << i;
  }
}

TEST_F(StepPlannerTest, HiddenStatesHaveStepsOfTheirOwn) {
  const std::vector<LaneWish> wishes{decode(1), chunk(2, 10, "", StepOutput::kHidden)};
  EXPECT_EQ(planner_.choose(wishes), (Chosen{1}));
  EXPECT_EQ(planner_.choose(wishes), (Chosen{0}));
  EXPECT_EQ(planner_.choose({chunk(3, 10, "", StepOutput::kLogitsAndHidden), decode(1)}), (Chosen{0, 1}));
}

TEST_F(StepPlannerTest, TenantsTakeTurnsWhateverTheyAsk) {
  const std::vector<LaneWish> wishes{chunk(1, 90, "a"), chunk(2, 90, "a"), chunk(3, 90, "a"), chunk(4, 90, "b")};
  std::vector<int> n_served(4);
  for (int i = 0; i < 60; ++i)
    for (const std::size_t k : planner_.choose(wishes)) ++n_served[k];
  EXPECT_EQ(n_served, (std::vector<int>{10, 10, 10, 30}));
}

TEST_F(StepPlannerTest, MoreDecodingThanAStepHoldsTakesTurns) {
  std::vector<LaneWish> wishes;
  for (uint64_t lane = 1; lane <= 5; ++lane) wishes.push_back(decode(lane, 40));
  wishes.push_back(chunk(6, 100));
  std::vector<int> n_served(6);
  for (int i = 0; i < 60; ++i) {
    std::size_t n = 0;
    for (const std::size_t k : planner_.choose(wishes)) {
      n += wishes[k].wish.n_tokens;
      ++n_served[k];
    }
    EXPECT_LE(n, 100u);
  }
  // Two of five at a time, in every other step.
  for (int lane = 0; lane < 5; ++lane) EXPECT_GE(n_served[lane], 10) << lane;
  EXPECT_EQ(n_served[5], 30);
}

}  // namespace
}  // namespace hocket
