// Embeddings: pooling, unit length, dimensions, checks.
#include "engine/embeddings.h"

#include <cmath>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class EmbeddingTest : public ServiceTest {
 protected:
  std::vector<float> embed(Prompt input, std::optional<int> dimensions = {}) {
    EmbeddingRequest request;
    request.inputs.push_back(std::move(input));
    request.dimensions = dimensions;
    auto result = service->embed(std::move(request), CancelToken());
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result ? result->vectors.at(0) : std::vector<float>();
  }
  static double length(const std::vector<float>& v) {
    double sum = 0;
    for (const float x : v) sum += static_cast<double>(x) * x;
    return std::sqrt(sum);
  }
};

TEST_F(EmbeddingTest, VectorsHaveUnitLength) {
  start();
  const auto vector = embed(std::string("hello"));
  EXPECT_EQ(vector.size(), 8u);
  EXPECT_NEAR(length(vector), 1.0, 1e-6);
}

TEST_F(EmbeddingTest, LastPoolingLooksAtTheLastTokenOnly) {
  options.pooling = "last";
  start();
  EXPECT_EQ(embed(std::string("xa")), embed(std::string("a")));
  EXPECT_NE(embed(std::string("ax")), embed(std::string("a")));
}

TEST_F(EmbeddingTest, ClsPoolingLooksAtTheFirst) {
  options.pooling = "cls";
  start();
  EXPECT_EQ(embed(std::string("a") + std::string(200, 'x')), embed(std::string("a")));
}

TEST_F(EmbeddingTest, MeanPoolingAveragesOverChunks) {
  options.pooling = "mean";
  start();
  const auto many = embed(std::string(150, 'a'));  // three chunks
  const auto one = embed(std::string("a"));
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], 1e-6);
}

TEST_F(EmbeddingTest, DimensionsShortenAndNormaliseAgain) {
  start();
  const auto whole = embed(std::string("hello"));
  const auto cut = embed(std::string("hello"), 3);
  ASSERT_EQ(cut.size(), 3u);
  EXPECT_NEAR(length(cut), 1.0, 1e-6);
  EXPECT_NEAR(cut[0] / cut[1], whole[0] / whole[1], 1e-4);
}

TEST_F(EmbeddingTest, CountsTokensOfAllInputs) {
  start();
  EmbeddingRequest request;
  request.inputs = {std::string("abc"), std::vector<TokenId>{1, 2}};
  const auto result = service->embed(request, CancelToken());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->vectors.size(), 2u);
  EXPECT_EQ(result->n_prompt_tokens, 5u);
}

TEST_F(EmbeddingTest, WrongInputsAreRefused) {
  start();
  const auto refused = [&](std::vector<Prompt> inputs, std::optional<int> dimensions, const std::string& field,
                           const std::string& reason = "") {
    EmbeddingRequest request;
    request.inputs = std::move(inputs);
    request.dimensions = dimensions;
    const auto result = service->embed(request, CancelToken());
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(result.error().param, field);
    EXPECT_EQ(result.error().reason, reason);
  };
  refused({}, {}, "input");
  refused({std::string()}, {}, "input");
  refused({std::vector<TokenId>{}}, {}, "input");
  refused({std::vector<TokenId>{-3}}, {}, "input");
  refused({std::string(2000, 'a')}, {}, "input", "context_length_exceeded");
  refused({std::string("a")}, 0, "dimensions");
  refused({std::string("a")}, 9, "dimensions");
}

TEST_F(EmbeddingTest, CanBeCancelledWhileItWaits) {
  gate.close();
  start();
  CompletionRequest busy = completion("abc");
  auto reply = service->complete(busy);
  gate.wait_for_visitor();
  CancelToken cancel;
  cancel.cancel();
  EmbeddingRequest request;
  request.inputs.emplace_back(std::string("a"));
  const auto result = service->embed(request, cancel);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
}

TEST(Pooling, Names) {
  EXPECT_EQ(*parse_pooling(""), Pooling::kMean);
  EXPECT_EQ(*parse_pooling("last"), Pooling::kLast);
  EXPECT_EQ(*parse_pooling("cls"), Pooling::kCls);
  EXPECT_EQ(parse_pooling("rank").error().param, "pooling");
}

TEST(Normalise, AZeroVectorStays) {
  std::vector<float> zero(4);
  normalise(zero, {});
  EXPECT_EQ(zero, std::vector<float>(4));
}

}  // namespace
}  // namespace hocket::testing_engine
