#include <gtest/gtest.h>

#include "weights/quantize_source.h"

namespace hocket {
namespace {

TEST(QuantizeToOneOrTwoBits, StaysWithinItsError) {
  check_errors({{"IQ2_S", 0.29}, {"IQ2_XS", 0.32}, {"IQ2_XXS", 0.36}, {"IQ1_M", 0.55}, {"IQ1_S", 0.55}});
}

TEST(QuantizeToOneOrTwoBits, ExtremeValuesComeThrough) {
  std::vector<std::string> names;
  for (const std::string& name : weight_type_names())
    if (has_large_tables(name)) names.push_back(name);
  ASSERT_EQ(names.size(), 5u);
  check_extremes(names);
}

}  // namespace
}  // namespace hocket
