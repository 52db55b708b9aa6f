// Blocks against their double-precision twins, over odd sizes.
//
// Bounds: kExact, kGeluTable and kHalf of block_bench.h; flash attention rounds queries and keys to half precision.
#include <gtest/gtest.h>

#include "lm/blocks/attention.h"
#include "lm/blocks/mlp.h"
#include "lm/blocks/temperature.h"
#include "support/block_bench.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

struct AttentionCase {
  const char* name;
  int64_t n_embd, n_head, n_kv_head, head_dim;
  Bias bias;
  bool head_norm;
  RopeKind rope;
  int n_rot;
  float yarn_factor;  // 0 = none
  std::size_t window;
  float softcap;
  std::size_t n_tokens;
  bool sinks = false;
};

class AttentionTwin : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTwin, MatchesTheNaiveEvaluation) {
  const AttentionCase& c = GetParam();
  AttentionSpec spec;
  spec.n_embd = c.n_embd;
  spec.n_head = c.n_head;
  spec.n_kv_head = c.n_kv_head;
  spec.head_dim_k = spec.head_dim_v = c.head_dim;
  spec.qkv_bias = spec.output_bias = c.bias;
  spec.head_norm = c.head_norm;
  spec.scale = 0.3f;
  spec.softcap = c.softcap;
  spec.rope.kind = c.rope;
  spec.rope.n_rot = c.n_rot;
  spec.rope.n_ctx_orig = 64;
  if (c.yarn_factor > 0) {
    spec.rope.freq_scale = 1.0f / c.yarn_factor;
    spec.rope.ext_factor = 1.0f;
  }
  spec.sinks = c.sinks;
  // The synthetic source would make the fused projection too: take the separate ones.
  Bench bench({"attn_qkv", ".scale"});
  const Attention attention = Attention::make(bench.weights, "blk.0.", spec);
  ASSERT_TRUE(bench.weights.load({}).ok());

  reference::AttentionWeights twin;
  twin.n_head = static_cast<std::size_t>(c.n_head);
  twin.n_kv_head = static_cast<std::size_t>(c.n_kv_head);
  twin.head_dim = static_cast<std::size_t>(c.head_dim);
  twin.q = bench.weight("blk.0.attn_q.weight");
  twin.k = bench.weight("blk.0.attn_k.weight");
  twin.v = bench.weight("blk.0.attn_v.weight");
  twin.output = bench.weight("blk.0.attn_output.weight");
  if (c.bias != Bias::kNone) {
    twin.q_bias = bench.weight("blk.0.attn_q.bias");
    twin.k_bias = bench.weight("blk.0.attn_k.bias");
    twin.v_bias = bench.weight("blk.0.attn_v.bias");
    twin.output_bias = bench.weight("blk.0.attn_output.bias");
  }
  if (c.head_norm) {
    twin.q_norm = bench.weight("blk.0.attn_q_norm.weight");
    twin.k_norm = bench.weight("blk.0.attn_k_norm.weight");
  }
  if (c.sinks) twin.sinks = bench.weight("blk.0.attn_sinks.weight");
  twin.scale = 0.3f;
  twin.softcap = c.softcap;
  twin.window = c.window;
  if (c.rope != RopeKind::kNone) twin.rope.n_rot = static_cast<std::size_t>(c.n_rot);
  twin.rope.half_split = c.rope == RopeKind::kNeox;
  twin.rope.n_ctx_orig = 64;
  twin.rope.yarn = c.yarn_factor > 0;
  twin.rope.yarn_factor = c.yarn_factor;

  const auto x = input(static_cast<std::size_t>(c.n_embd), c.n_tokens);
  const auto expected = flat(reference::attention(twin, rows_of(x, static_cast<std::size_t>(c.n_embd))));
  const KvLayerSpec memory{c.n_kv_head, c.head_dim, c.head_dim, c.window};
  const auto build = [&](StepGraph& g, Tensor in) { return attention.run(g, 0, in, nullptr); };
  EXPECT_LE(nmse(run(bench, memory, x, static_cast<std::size_t>(c.n_embd), false, build), expected), kExact);
  EXPECT_LE(nmse(run(bench, memory, x, static_cast<std::size_t>(c.n_embd), true, build), expected), kHalf);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttentionTwin,
    testing::Values(AttentionCase{"one_token", 32, 2, 2, 16, Bias::kNone, false, RopeKind::kNorm, 16, 0, 0, 0, 1},
                    AttentionCase{"grouped", 64, 6, 2, 16, Bias::kRequired, false, RopeKind::kNorm, 16, 0, 0, 0, 33},
                    AttentionCase{"one_kv_head", 48, 5, 1, 24, Bias::kNone, true, RopeKind::kNeox, 24, 0, 0, 0, 17},
                    AttentionCase{"partial_rope", 64, 4, 2, 20, Bias::kNone, false, RopeKind::kNeox, 12, 0, 0, 0, 29},
                    AttentionCase{"no_rope", 64, 4, 4, 16, Bias::kOptional, false, RopeKind::kNone, 0, 0, 0, 0, 40},
                    AttentionCase{"yarn", 64, 4, 2, 32, Bias::kNone, false, RopeKind::kNeox, 32, 4, 0, 0, 70},
                    AttentionCase{"window", 64, 4, 2, 16, Bias::kNone, true, RopeKind::kNeox, 16, 0, 7, 0, 41},
                    AttentionCase{"softcap", 64, 4, 2, 16, Bias::kNone, false, RopeKind::kNorm, 16, 0, 0, 2.0f, 31},
                    AttentionCase{"sinks", 64, 4, 2, 16, Bias::kRequired, false, RopeKind::kNeox, 16, 0, 5, 0, 23,
                                  true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(GatedMlpTwin, MatchesTheNaiveEvaluation) {
  for (const auto& [n_embd, n_ff, n_tokens] : {std::tuple{32, 96, 1}, std::tuple{48, 80, 7}, std::tuple{33, 65, 130}}) {
    for (const Activation activation : {Activation::kSilu, Activation::kGelu}) {
      Bench bench;
      const GatedMlp mlp = GatedMlp::make(bench.weights, "blk.0.", n_embd, n_ff, activation);
      ASSERT_TRUE(bench.weights.load({}).ok());
      const auto x = input(static_cast<std::size_t>(n_embd), static_cast<std::size_t>(n_tokens));
      reference::Row expected;
      for (const auto& row : rows_of(x, static_cast<std::size_t>(n_embd))) {
        const auto y =
            reference::gated_mlp(bench.weight("blk.0.ffn_gate.weight"), bench.weight("blk.0.ffn_up.weight"),
                                 bench.weight("blk.0.ffn_down.weight"), row, activation == Activation::kGelu);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      const auto got = run(bench, {1, 16, 16, 0}, x, static_cast<std::size_t>(n_embd), false,
                           [&](StepGraph& g, Tensor in) { return mlp.run(g, in); });
      EXPECT_LE(nmse(got, expected), activation == Activation::kGelu ? kGeluTable : kExact) << n_embd << " " << n_ff;
    }
  }
}

TEST(Linear, MultipliesByTheFactorBeforeItAddsTheOffset) {
  Bench bench(std::vector<std::string>{});
  const Linear linear = Linear::make(bench.weights, "blk.0.attn_q", 20, 12, Bias::kRequired);
  ASSERT_TRUE(bench.weights.load({}).ok());
  const auto x = input(20, 3);
  const double factor = bench.weight("blk.0.attn_q.scale")[0];
  const auto offset = bench.weight("blk.0.attn_q.bias");
  reference::Row expected;
  for (const auto& row : rows_of(x, 20)) {
    const auto y = reference::product(bench.weight("blk.0.attn_q.weight"), row);
    for (std::size_t i = 0; i < y.size(); ++i) expected.push_back(y[i] * factor + offset[i]);
  }
  const auto got = run(bench, {1, 16, 16, 0}, x, 20, false, [&](StepGraph& g, Tensor in) { return linear.run(g, in); });
  EXPECT_LE(nmse(got, expected), kExact);
}

TEST(RmsNormTwin, MatchesTheNaiveEvaluation) {
  for (const std::size_t n : {1u, 31u, 64u, 1000u}) {
    Bench bench;
    const RmsNorm norm = RmsNorm::make(bench.weights, "output_norm", static_cast<int64_t>(n), 1e-6f);
    ASSERT_TRUE(bench.weights.load({}).ok());
    const auto x = input(n, 3);
    reference::Row expected;
    for (const auto& row : rows_of(x, n)) {
      const auto y = reference::rms_norm(row, bench.weight("output_norm.weight"), 1e-6);
      expected.insert(expected.end(), y.begin(), y.end());
    }
    EXPECT_LE(nmse(run(bench, {1, 16, 16, 0}, x, n, false, [&](StepGraph& g, Tensor in) { return norm.run(g, in); }),
                   expected),
              kExact);
  }
}

TEST(AttentionTemperature, GrowsByTheLogarithmOfWholeLengths) {
  AttentionTemperature temperature;
  temperature.scale = 0.3f;
  for (const int64_t length : {1, 3, 7, 49, 200}) {
    temperature.length = length;
    Bench bench;
    const std::vector<float> ones(2 * 150, 1.0f);
    const auto got = run(bench, {1, 2, 2}, ones, 2, false, [&](StepGraph& g, Tensor x) {
      return temperature.run(g, ggml_reshape_3d(g.context(), x, 2, 1, x->ne[1]));
    });
    ASSERT_EQ(got.size(), ones.size());
    for (int64_t p = 0; p < 150; ++p) {
      const double wanted = 1 + 0.3 * std::log(1.0 + static_cast<double>(p / length));
      EXPECT_NEAR(got[static_cast<std::size_t>(2 * p)], wanted, 1e-6) << "position " << p << " of " << length;
    }
  }
}

}  // namespace
}  // namespace hocket::test
