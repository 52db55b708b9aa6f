// tests/support/every_position.h: the logits of a model of kTinyVocab tokens at every position.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "lm/runner.h"
#include "support/tiny_models.h"

namespace hocket::test {

// Of 40 tokens: one batch of 32, then one token at a time. [kTinyVocab, 40].
inline std::vector<float> logits_of_every_position(LmRunner& runner) {
  std::vector<float> rows;
  for (int32_t i = 0; i < 40;) {
    std::vector<BatchToken> batch;
    for (const int32_t end = i == 0 ? 32 : i + 1; i < end; ++i)
      batch.push_back({static_cast<int32_t>(i * 37 % kTinyVocab), 0, true});
    EXPECT_TRUE(runner.step(batch).ok());
    for (std::size_t row = 0; row < batch.size(); ++row)
      rows.insert(rows.end(), runner.output(row).begin(), runner.output(row).end());
  }
  return rows;
}

}  // namespace hocket::test
