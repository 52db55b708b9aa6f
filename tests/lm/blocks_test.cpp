// Blocks against their double-precision twins, over odd sizes.
//
// F32 weights and caches with exact attention: NMSE ≤ 1e-11 (order of F32 sums over at most a few hundred terms); GELU
// goes through ggml's half-precision table: 1e-6; flash attention rounds queries and keys to half precision: 1e-5.
#include <gtest/gtest.h>

#include <numeric>

#include "compute/device.h"
#include "compute/executor.h"
#include "lm/blocks/attention.h"
#include "lm/blocks/mlp.h"
#include "lm/step_inputs.h"
#include "support/numbers.h"
#include "support/reference/transformer.h"
#include "weights/weight_set.h"

namespace hocket::test {
namespace {

constexpr double kExact = 1e-11, kGeluTable = 1e-6, kHalf = 1e-5;

struct Bench {
  std::shared_ptr<SyntheticWeights> source = std::make_shared<SyntheticWeights>(11, /*with_optional=*/true);
  ggml_backend_dev_t device = *find_device("");
  WeightSet weights{source, device, true};
  std::unique_ptr<Executor> executor = std::move(*Executor::create(device, 2, 512));

  reference::Row weight(const std::string& name) const {
    for (const TensorInfo& tensor : source->made()) {
      if (tensor.name != name) continue;
      std::vector<float> values(tensor.n_bytes / sizeof(float));
      EXPECT_TRUE(source->read(tensor, std::as_writable_bytes(std::span(values))).ok());
      return {values.begin(), values.end()};
    }
    ADD_FAILURE() << "no weight " << name;
    return {};
  }
};

std::vector<float> input(std::size_t n_embd, std::size_t n_tokens) {
  std::vector<float> x(n_embd * n_tokens);
  uint32_t state = 5;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
  }
  return x;
}

reference::Rows rows_of(const std::vector<float>& x, std::size_t n_embd) {
  reference::Rows rows;
  for (std::size_t at = 0; at < x.size(); at += n_embd)
    rows.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(at),
                      x.begin() + static_cast<std::ptrdiff_t>(at + n_embd));
  return rows;
}

reference::Row flat(const reference::Rows& rows) {
  reference::Row all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

// Runs `build` on x [n_embd, n_tokens] in a step graph over one layer of the given memory.
template <class Build>
std::vector<float> run(Bench& bench, const KvLayerSpec& spec, const std::vector<float>& x, std::size_t n_embd,
                       bool flash, Build build) {
  const std::size_t n_tokens = x.size() / n_embd;
  const ModelMemoryOptions options{{256, 1, 256, CacheType::kF32, CacheType::kF32}, {}};
  auto memory = std::move(*ModelMemory::create({{spec}}, options, bench.device));
  const StepPlacement placement = *memory->place(std::vector<SeqId>(n_tokens, 0));
  StepGraph g(step_shape(placement, n_tokens, n_tokens, StepOutput::kLogits), *memory,
              {.flash_attention = flash, .max_nodes = 512, .n_activation = static_cast<int64_t>(n_embd)});
  g.set_result(build(g, g.activations()));
  EXPECT_TRUE(bench.executor->allocate(g.graph()).ok());
  const std::vector<int32_t> tokens(n_tokens, 0);
  std::vector<uint32_t> every(n_tokens);
  std::iota(every.begin(), every.end(), 0u);
  fill_inputs(g, *memory, placement, {tokens, x, every});
  EXPECT_TRUE(bench.executor->run(g.graph(), CancelToken()).ok());
  std::vector<float> out(static_cast<std::size_t>(ggml_nelements(g.result())));
  ggml_backend_tensor_get(g.result(), out.data(), 0, out.size() * sizeof(float));
  return out;
}

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
};

class AttentionTwin : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTwin, MatchesTheNaiveEvaluation) {
  const AttentionCase& c = GetParam();
  Bench bench;
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
  // The synthetic source would make the fused projection too: take the separate ones.
  struct Separate : SyntheticWeights {
    using SyntheticWeights::SyntheticWeights;
    const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override {
      return name.find("attn_qkv") != std::string_view::npos ? nullptr : SyntheticWeights::find(name, wanted, optional);
    }
  };
  auto source = std::make_shared<Separate>(11, true);
  WeightSet weights(source, bench.device, true);
  const Attention attention = Attention::make(weights, "blk.0.", spec);
  ASSERT_TRUE(weights.load({}).ok());
  bench.source = source;

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
                    AttentionCase{"softcap", 64, 4, 2, 16, Bias::kNone, false, RopeKind::kNorm, 16, 0, 0, 2.0f, 31}),
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

}  // namespace
}  // namespace hocket::test
