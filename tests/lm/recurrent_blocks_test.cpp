// Recurrent blocks and latent attention against their double-precision twins: several sequences of different lengths in
// one step, and states carried from step to step.
//
// F32 throughout: NMSE ≤ 1e-10 (order of F32 sums; the delta rule runs over the whole past).
#include <gtest/gtest.h>

#include "lm/blocks/gated_delta_net.h"
#include "lm/blocks/kda.h"
#include "lm/blocks/mla.h"
#include "support/block_bench.h"
#include "support/numbers.h"
#include "support/reference/recurrent.h"

namespace hocket::test {
namespace {

constexpr double kRecurrent = 1e-10;
constexpr float kEps = 1e-5f;

// Steps of several sequences: alone, together with equal and unequal lengths, shorter than the convolutions.
const std::vector<std::vector<std::vector<std::size_t>>> kSchedules{
    {{40, 0, 0}, {0, 37, 0}, {0, 0, 21}},
    {{40, 37, 21}},
    {{20, 20, 20}, {1, 1, 1}, {1, 1, 0}, {18, 15, 0}},
    {{1, 2, 3}, {2, 1, 1}, {37, 34, 17}},
};
constexpr std::size_t kLengths[] = {40, 37, 21};

std::vector<std::vector<float>> inputs(std::size_t n_embd) {
  std::vector<std::vector<float>> x;
  for (std::size_t s = 0; s < 3; ++s) x.push_back(input(n_embd, kLengths[s], static_cast<uint32_t>(17 + s)));
  return x;
}

// Every schedule gives what `twin` gives for each sequence alone.
template <class Build, class Twin>
void compare(Bench& bench, const LayerMemory& memory, std::size_t n_embd, bool flash, double bound, Build build,
             Twin twin) {
  const auto x = inputs(n_embd);
  std::vector<reference::Row> expected;
  for (const auto& rows : x) expected.push_back(flat(twin(rows_of(rows, n_embd))));
  for (std::size_t i = 0; i < kSchedules.size(); ++i) {
    const auto got = run_steps(bench, memory, x, n_embd, flash, kSchedules[i], build);
    for (std::size_t s = 0; s < x.size(); ++s)
      EXPECT_LE(nmse(got[s], expected[s]), bound) << "schedule " << i << ", sequence " << s;
  }
}

TEST(KdaTwin, MatchesTheNaiveEvaluation) {
  for (const bool low_rank : {false, true}) {
    for (const auto& [n_embd, n_head, head_dim, kernel] : {std::tuple{48, 3, 16, 4}, std::tuple{32, 2, 20, 2}}) {
      SCOPED_TRACE(testing::Message() << "low rank " << low_rank << ", heads of " << head_dim);
      Bench bench;
      KdaSpec spec;
      spec.n_embd = n_embd;
      spec.n_head = n_head;
      spec.head_dim = head_dim;
      spec.kernel = kernel;
      spec.low_rank = low_rank;
      spec.lower_bound = low_rank ? 0.0f : -5.0f;
      const Kda kda = Kda::make(bench.weights, "blk.0.", spec);
      ASSERT_TRUE(bench.weights.load({}).ok());
      const auto w = [&](const char* name) { return bench.weight(std::string("blk.0.") + name); };
      reference::KdaWeights twin{w("attn_q.weight"),
                                 w("attn_k.weight"),
                                 w("attn_v.weight"),
                                 w("ssm_conv1d_q.weight"),
                                 w("ssm_conv1d_k.weight"),
                                 w("ssm_conv1d_v.weight"),
                                 w("ssm_f_a.weight"),
                                 low_rank ? w("ssm_f_b.weight") : reference::Row{},
                                 w("ssm_dt.bias"),
                                 w("ssm_a"),
                                 w("ssm_beta.weight"),
                                 w("ssm_g_a.weight"),
                                 low_rank ? w("ssm_g_b.weight") : reference::Row{},
                                 w("ssm_norm.weight"),
                                 w("attn_output.weight")};
      compare(
          bench, {.recurrent = spec.memory()}, static_cast<std::size_t>(n_embd), false, kRecurrent,
          [&](StepGraph& g, Tensor x) { return kda.run(g, 0, x); },
          [&](const reference::Rows& x) {
            return reference::kda(x, twin, static_cast<std::size_t>(n_head), static_cast<std::size_t>(head_dim), kEps,
                                  spec.lower_bound);
          });
    }
  }
}

TEST(GatedDeltaNetTwin, MatchesTheNaiveEvaluation) {
  for (const DeltaHeads heads : {DeltaHeads::kTiled, DeltaHeads::kGrouped}) {
    for (const auto& [n_embd, n_k_head, n_v_head, head_dim] : {std::tuple{48, 2, 6, 16}, std::tuple{32, 3, 3, 12}}) {
      const bool grouped = heads == DeltaHeads::kGrouped;
      SCOPED_TRACE(testing::Message() << "grouped " << grouped << ", value heads " << n_v_head);
      Bench bench;
      GatedDeltaNetSpec spec;
      spec.n_embd = n_embd;
      spec.head_dim = head_dim;
      spec.n_k_head = n_k_head;
      spec.n_v_head = n_v_head;
      spec.heads = heads;
      const GatedDeltaNet net = GatedDeltaNet::make(bench.weights, "blk.0.", spec);
      ASSERT_TRUE(bench.weights.load({}).ok());
      const auto w = [&](const char* name) { return bench.weight(std::string("blk.0.") + name); };
      reference::DeltaNetWeights twin{w("attn_qkv.weight"),
                                      w("attn_gate.weight"),
                                      w("ssm_conv1d.weight"),
                                      w("ssm_dt.bias"),
                                      w("ssm_a"),
                                      grouped ? reference::Row{} : w("ssm_beta.weight"),
                                      grouped ? reference::Row{} : w("ssm_alpha.weight"),
                                      grouped ? w("ssm_ba.weight") : reference::Row{},
                                      w("ssm_norm.weight"),
                                      w("ssm_out.weight")};
      compare(
          bench, {.recurrent = spec.memory()}, static_cast<std::size_t>(n_embd), false, kRecurrent,
          [&](StepGraph& g, Tensor x) { return net.run(g, 0, x); },
          [&](const reference::Rows& x) {
            return reference::gated_delta_net(x, twin, static_cast<std::size_t>(n_k_head),
                                              static_cast<std::size_t>(n_v_head), static_cast<std::size_t>(head_dim),
                                              kEps);
          });
    }
  }
}

// Keys and values of heads as two tensors, from attn_kv_b [n_latent, (nope + head_dim_v) · n_head].
void split_heads(const reference::Row& kv_b, const MlaSpec& spec, reference::MlaWeights& twin) {
  const auto n_head = static_cast<std::size_t>(spec.n_head), n_latent = static_cast<std::size_t>(spec.n_kv_latent);
  const auto nope = static_cast<std::size_t>(spec.head_dim_nope), dim_v = static_cast<std::size_t>(spec.head_dim_v);
  twin.k_b.resize(n_head * n_latent * nope);
  twin.v_b.resize(n_head * n_latent * dim_v);
  for (std::size_t h = 0; h < n_head; ++h)
    for (std::size_t r = 0; r < n_latent; ++r) {
      const auto at = [&](std::size_t i) { return kv_b[(h * (nope + dim_v) + i) * n_latent + r]; };
      for (std::size_t i = 0; i < nope; ++i) twin.k_b[(h * n_latent + r) * nope + i] = at(i);
      for (std::size_t j = 0; j < dim_v; ++j) twin.v_b[(h * dim_v + j) * n_latent + r] = at(nope + j);
    }
}

// The schedules have steps of more and of fewer queries than the plain form needs.
TEST(MlaTwin, MatchesTheFormThatIsNotAbsorbed) {
  struct Case {
    const char* name;
    bool low_rank, flash, caches_heads;
    int64_t plain_bytes;
  };
  const int64_t head_bytes = (2 * (12 + 8) + 10) * 256 * 4;
  for (const Case& c :
       {Case{"absorbed", false, false, false, 0}, Case{"absorbed, flash", true, true, false, 0},
        Case{"plain", true, false, false, 1 << 20}, Case{"plain, flash", false, true, false, 1 << 20},
        Case{"plain, two groups", true, false, false, 2 * head_bytes},
        Case{"plain, a head at a time, flash", false, true, false, head_bytes},
        Case{"heads cached", true, false, true, 0}, Case{"heads cached, flash", false, true, true, 0}}) {
    SCOPED_TRACE(c.name);
    Bench bench;
    MlaSpec spec;
    spec.n_embd = 48;
    spec.n_head = 3;
    spec.n_q_latent = c.low_rank ? 20 : 0;
    spec.n_kv_latent = 32;
    spec.head_dim_nope = 12;
    spec.head_dim_rope = 8;
    spec.head_dim_v = 10;
    spec.rope.kind = RopeKind::kNorm;
    spec.rope.n_rot = 8;
    spec.scale = 0.22f;
    spec.head_gate = c.low_rank;
    spec.plain_bytes = c.plain_bytes;
    spec.caches_heads = c.caches_heads;
    const Mla mla = Mla::make(bench.weights, "blk.0.", spec);
    ASSERT_TRUE(bench.weights.load({}).ok());
    const auto w = [&](const char* name) { return bench.weight(std::string("blk.0.") + name); };
    reference::MlaWeights twin;
    if (c.low_rank) {
      twin.q_a = w("attn_q_a.weight");
      twin.q_a_norm = w("attn_q_a_norm.weight");
      twin.q_b = w("attn_q_b.weight");
      twin.gate = w("attn_gate.weight");
    } else {
      twin.q = w("attn_q.weight");
    }
    twin.kv_a = w("attn_kv_a_mqa.weight");
    twin.kv_a_norm = w("attn_kv_a_norm.weight");
    if (c.caches_heads) {
      split_heads(w("attn_kv_b.weight"), spec, twin);
    } else {
      twin.k_b = w("attn_k_b.weight");
      twin.v_b = w("attn_v_b.weight");
    }
    twin.output = w("attn_output.weight");
    reference::Rope rope;
    rope.n_rot = 8;
    compare(
        bench, {.kv = spec.memory()}, 48, c.flash, c.flash ? kHalf : kRecurrent,
        [&](StepGraph& g, Tensor x) { return mla.run(g, 0, x); },
        [&](const reference::Rows& x) { return reference::mla(x, twin, 3, 32, 12, rope, 10, kEps, 0.22f); });
  }
}

}  // namespace
}  // namespace hocket::test
