// runtime/sampling_fixture.h: a byte vocabulary and short ways to make samplers in tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/sampling.h"
#include "support/byte_tokenizer.h"

namespace hocket {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Bytes as tokens, except that ids 198 and 10, 42 and 58 have changed places: 198 is a line break and 42 a colon, as
// the golden file has them.
inline const Tokenizer& sampling_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    Metadata metadata = fake::byte_vocabulary();
    auto tokens = **metadata.strings("tokenizer.ggml.tokens");
    std::swap(tokens[198], tokens[10]);
    std::swap(tokens[42], tokens[58]);
    metadata.set("tokenizer.ggml.tokens", MetadataArray{tokens});
    auto loaded = Tokenizer::load(metadata);
    EXPECT_TRUE(loaded.ok()) << (loaded ? "" : loaded.error().message);
    return loaded ? std::move(loaded).value() : nullptr;
  }();
  return *tokenizer;
}

// The given logits for the first ids, −infinity for the rest of the vocabulary.
inline std::vector<float> padded(std::vector<float> logits) {
  logits.resize(sampling_tokenizer().size(), kMinusInfinity);
  return logits;
}

// Everything off: the draw is from the plain distribution.
inline SamplingParams neutral() {
  SamplingParams params;
  params.seed = 1;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  return params;
}

inline std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) {
  auto sampler = Sampler::create(params, sampling_tokenizer(), sampling_tokenizer().size(), 4096);
  EXPECT_TRUE(sampler.ok()) << (sampler ? "" : sampler.error().message);
  return sampler ? std::move(sampler).value() : nullptr;
}

inline std::map<TokenId, float> distribution(const Sampler& sampler) {
  std::map<TokenId, float> result;
  for (const Candidate& c : sampler.candidates()) result[c.id] = c.p;
  return result;
}

}  // namespace hocket
