#include "store/residency.h"

#include <gtest/gtest.h>

namespace hocket::test {
namespace {

class ResidencyTest : public testing::Test {
 protected:
  Result<std::shared_ptr<const int>> borrow(Residency& models, const std::string& key, int value) {
    return models.borrow<int>(key, [&]() -> Result<std::unique_ptr<int>> {
      ++n_loads_;
      if (value < 0) return Error(ErrorCode::kOutOfMemory, "too large", key);
      return std::make_unique<int>(value);
    });
  }
  int n_loads_ = 0;
};

TEST_F(ResidencyTest, StrictHoldsOneAtATime) {
  Residency models(ResidencyPolicy::kStrict);
  {
    const auto a = borrow(models, "a", 1);
    ASSERT_TRUE(a.ok());
    EXPECT_EQ(borrow(models, "a", 2).value(), *a);  // the same, not loaded again
    const auto b = borrow(models, "b", 2);
    ASSERT_FALSE(b.ok());
    EXPECT_EQ(b.error().code, ErrorCode::kInternal);
    EXPECT_NE(b.error().message.find("a is still in use"), std::string::npos);
    EXPECT_EQ(models.n_resident(), 1U);
  }
  EXPECT_EQ(models.n_resident(), 0U);
  EXPECT_EQ(**borrow(models, "b", 2), 2);
  EXPECT_EQ(**borrow(models, "a", 3), 3);
  EXPECT_EQ(n_loads_, 3);
}

TEST_F(ResidencyTest, KeepLoadsOnce) {
  Residency models(ResidencyPolicy::kKeep);
  EXPECT_EQ(**borrow(models, "a", 1), 1);
  EXPECT_EQ(**borrow(models, "b", 2), 2);
  EXPECT_EQ(**borrow(models, "a", 3), 1);
  EXPECT_EQ(n_loads_, 2);
  EXPECT_EQ(models.n_resident(), 2U);
}

TEST_F(ResidencyTest, AFailedLoadLeavesNothing) {
  for (const auto policy : {ResidencyPolicy::kStrict, ResidencyPolicy::kKeep}) {
    Residency models(policy);
    EXPECT_EQ(borrow(models, "a", -1).error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(models.n_resident(), 0U);
    EXPECT_TRUE(borrow(models, "a", 1).ok());
  }
}

}  // namespace
}  // namespace hocket::test
