// The mixture of experts against its double-precision twin, what its router chooses from hostile scores, and the keys
// that its sizes are read from.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

#include "lm/blocks/feed_forward.h"
#include "support/block_bench.h"
#include "support/numbers.h"
#include "support/reference/moe.h"

namespace hocket::test {
namespace {

// Attention plays no part here; a step graph has a cache all the same.
constexpr KvLayerSpec kNoMatter{1, 16, 16, 0};

struct MoeCase {
  std::string name;
  MoeSpec spec;
  bool selection_bias = false, fused = false, scales = false;
  int64_t n_tokens = 9;
};

MoeSpec sizes(int64_t n_expert, int64_t n_used) {
  MoeSpec spec;
  spec.n_embd = 48;
  spec.n_ff = 24;
  spec.n_expert = n_expert;
  spec.n_used = n_used;
  return spec;
}

template <class Change>
MoeCase with(std::string name, MoeSpec spec, Change change) {
  MoeCase c{std::move(name), spec};
  change(c);
  return c;
}

std::vector<MoeCase> cases() {
  std::vector<MoeCase> all;
  for (const Gating gating : {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxOfSelected, Gating::kSqrtSoftplus}) {
    const std::string name = "gating" + std::to_string(static_cast<int>(gating));
    const auto gated = [&](const std::string& suffix, auto change) {
      all.push_back(with(name + suffix, sizes(6, 2), [&](MoeCase& c) {
        c.spec.gating = gating;
        change(c);
      }));
    };
    gated("", [](MoeCase&) {});
    gated("_norm", [](MoeCase& c) { c.spec.norm = true; });
    gated("_norm_bias_scale", [](MoeCase& c) {
      c.spec.norm = c.selection_bias = true;
      c.spec.scale = 2.5f;
    });
    gated("_groups", [](MoeCase& c) {
      c.spec = [&] {
        MoeSpec spec = sizes(12, 3);
        spec.gating = c.spec.gating;
        return spec;
      }();
      c.spec.n_group = 4;
      c.spec.n_group_used = 2;
      c.spec.norm = true;
      c.n_tokens = 33;
    });
  }
  all.push_back(with("groups_with_bias", sizes(16, 4), [](MoeCase& c) {
    c.spec.gating = Gating::kSigmoid;
    c.spec.n_group = 8;  // of two experts each
    c.spec.n_group_used = 3;
    c.selection_bias = true;
  }));
  all.push_back(with("every_expert", sizes(3, 3), [](MoeCase&) {}));
  all.push_back(with("one_of_many", sizes(40, 1), [](MoeCase& c) { c.spec.norm = true; }));
  all.push_back(with("odd_sizes_one_token", sizes(7, 5), [](MoeCase& c) {
    c.spec.n_embd = 33;
    c.spec.n_ff = 17;
    c.n_tokens = 1;
  }));
  all.push_back(with("many_tokens", sizes(5, 2), [](MoeCase& c) { c.n_tokens = 150; }));
  all.push_back(with("fused", sizes(6, 2), [](MoeCase& c) { c.fused = true; }));
  all.push_back(with("fused_scales_bias_gelu", sizes(6, 2), [](MoeCase& c) {
    c.fused = c.scales = true;
    c.spec.bias = Bias::kRequired;
    c.spec.activation = Activation::kGelu;
  }));
  all.push_back(with("oai", sizes(6, 2), [](MoeCase& c) {
    c.spec.gating = Gating::kSoftmaxOfSelected;
    c.spec.bias = Bias::kRequired;
    c.spec.activation = Activation::kSwigluOai;
  }));
  all.push_back(with("oai_fused", sizes(6, 2), [](MoeCase& c) {
    c.fused = true;
    c.spec.activation = Activation::kSwigluOai;
  }));
  all.push_back(with("scales", sizes(6, 2), [](MoeCase& c) {
    c.scales = true;
    c.spec.n_ff_shared = 40;
  }));
  all.push_back(with("shared", sizes(6, 2), [](MoeCase& c) { c.spec.n_ff_shared = 40; }));
  all.push_back(with("gated_shared", sizes(6, 2), [](MoeCase& c) {
    c.spec.n_ff_shared = 40;
    c.spec.gated_shared = true;
  }));
  all.push_back(with("clamped", sizes(6, 2), [](MoeCase& c) {
    c.spec.n_ff_shared = 40;
    c.spec.clamp = 0.2f;
    c.spec.clamp_shared = 0.1f;
  }));
  all.push_back(with("clamped_fused", sizes(6, 2), [](MoeCase& c) {
    c.fused = true;
    c.spec.clamp = 0.2f;
  }));
  return all;
}

Bench bench_of(const MoeCase& c) {
  std::vector<std::string> absent;
  if (!c.fused) absent.push_back("gate_up");
  if (!c.selection_bias) absent.push_back("exp_probs_b");
  if (!c.scales) absent.push_back(".scale");
  if (c.spec.n_ff_shared == 0) absent.push_back("shexp");
  return Bench(absent);
}

reference::MoeWeights twin_of(const MoeCase& c, const Bench& bench) {
  const auto weight = [&](const char* name) { return bench.weight(std::string("blk.0.") + name); };
  const MoeSpec& s = c.spec;
  reference::MoeWeights w;
  w.n_expert = static_cast<std::size_t>(s.n_expert);
  w.n_used = static_cast<std::size_t>(s.n_used);
  w.n_group = static_cast<std::size_t>(s.n_group);
  w.n_group_used = static_cast<std::size_t>(s.n_group_used);
  w.router = static_cast<reference::Router>(static_cast<int>(s.gating) - 1);
  w.norm = s.norm && s.gating != Gating::kSoftmaxOfSelected;
  w.scale = s.scale;
  w.gate_kind = static_cast<reference::Gate>(static_cast<int>(s.activation));
  w.clamp = s.clamp;
  w.clamp_shared = s.clamp_shared;
  w.router_weight = weight("ffn_gate_inp.weight");
  if (c.selection_bias) w.selection_bias = weight("exp_probs_b.bias");
  // Halves of a stack whose experts have the gate's values first.
  const auto halves = [&](const reference::Row& both, reference::Row& gate, reference::Row& up) {
    const std::size_t n = both.size() / w.n_expert / 2;
    for (std::size_t i = 0; i < both.size(); ++i) (i / n % 2 == 0 ? gate : up).push_back(both[i]);
  };
  if (c.fused) {
    halves(weight("ffn_gate_up_exps.weight"), w.gate, w.up);
    if (c.scales) w.gate_scale = w.up_scale = weight("ffn_gate_up_exps.scale");
  } else {
    w.gate = weight("ffn_gate_exps.weight");
    w.up = weight("ffn_up_exps.weight");
    if (c.scales) w.gate_scale = weight("ffn_gate_exps.scale");
    if (c.scales) w.up_scale = weight("ffn_up_exps.scale");
  }
  w.down = weight("ffn_down_exps.weight");
  if (c.scales) w.down_scale = weight("ffn_down_exps.scale");
  if (s.bias != Bias::kNone) {
    w.router_bias = weight("ffn_gate_inp.bias");
    w.down_bias = weight("ffn_down_exps.bias");
    if (c.fused) {
      halves(weight("ffn_gate_up_exps.bias"), w.gate_bias, w.up_bias);
    } else {
      w.gate_bias = weight("ffn_gate_exps.bias");
      w.up_bias = weight("ffn_up_exps.bias");
    }
  }
  if (s.n_ff_shared > 0) {
    w.shared_gate_proj = weight("ffn_gate_shexp.weight");
    w.shared_up = weight("ffn_up_shexp.weight");
    w.shared_down = weight("ffn_down_shexp.weight");
    const auto scale = [&](reference::Row& values, const char* name) {
      if (!c.scales) return;
      const double factor = weight(name)[0];
      for (double& v : values) v *= factor;
    };
    scale(w.shared_gate_proj, "ffn_gate_shexp.scale");
    scale(w.shared_up, "ffn_up_shexp.scale");
    scale(w.shared_down, "ffn_down_shexp.scale");
    if (s.gated_shared) w.shared_gate = weight("ffn_gate_inp_shexp.weight");
  }
  return w;
}

class MoeTwin : public testing::TestWithParam<MoeCase> {};

TEST_P(MoeTwin, MatchesTheNaiveEvaluation) {
  const MoeCase& c = GetParam();
  Bench bench = bench_of(c);
  const Moe moe = Moe::make(bench.weights, "blk.0.", c.spec);
  const auto loaded = bench.weights.load({});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto n_embd = static_cast<std::size_t>(c.spec.n_embd);
  const auto x = input(n_embd, static_cast<std::size_t>(c.n_tokens));
  const reference::MoeWeights twin = twin_of(c, bench);
  reference::Rows expected;
  for (const auto& row : rows_of(x, n_embd)) expected.push_back(reference::moe(twin, row));
  const auto got = run(bench, kNoMatter, x, n_embd, false, [&](StepGraph& g, Tensor in) { return moe.run(g, in); });
  EXPECT_LE(nmse(got, flat(expected)), c.spec.activation == Activation::kGelu ? kGeluTable : kExact);
}

INSTANTIATE_TEST_SUITE_P(Cases, MoeTwin, testing::ValuesIn(cases()), [](const auto& test) { return test.param.name; });

TEST(Moe, RouterMaySeeAnotherInput) {
  MoeCase c{"", sizes(6, 2)};
  Bench bench = bench_of(c);
  const Moe moe = Moe::make(bench.weights, "blk.0.", c.spec);
  ASSERT_TRUE(bench.weights.load({}).ok());
  const auto x = input(48, 5);
  const auto with_minus = [&](bool minus) {
    return run(bench, kNoMatter, x, 48, false,
               [&](StepGraph& g, Tensor in) { return moe.run(g, in, minus ? ggml_neg(g.context(), in) : nullptr); });
  };
  EXPECT_GT(nmse(with_minus(true), with_minus(false)), 1e-3);
}

TEST(Moe, SharedExpertsThatNoKeyMentionsAreRefused) {
  Bench bench({"gate_up", ".scale"});
  Moe::make(bench.weights, "blk.0.", sizes(6, 2));
  const auto status = bench.weights.status();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().param, "blk.0.ffn_up_shexp.weight");
}

// Experts of a token, from rows of a kind that no trained model makes.
TEST(Moe, ChoosesDifferentExpertsThatExistWhateverTheScores) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const Gating gating : {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxOfSelected, Gating::kSqrtSoftplus}) {
    for (const bool grouped : {false, true}) {
      MoeCase c{"", sizes(64, 8)};
      c.spec.gating = gating;
      c.spec.norm = true;
      if (grouped) {
        c.spec.n_group = 8;
        c.spec.n_group_used = 2;
      }
      Bench bench = bench_of(c);
      const Moe moe = Moe::make(bench.weights, "blk.0.", c.spec);
      ASSERT_TRUE(bench.weights.load({}).ok());
      std::vector<float> x = input(48, 8);
      for (std::size_t i = 0; i < 48; ++i) {
        x[i] = 0;            // all scores equal
        x[48 + i] = nan;     // none a number
        x[96 + i] *= 1e38f;  // infinities of both signs
        x[144 + i] = i ? x[144 + i] : inf;
        x[192 + i] = -3e38f;
      }
      const auto ids =
          run(bench, kNoMatter, x, 48, false, [&](StepGraph& g, Tensor in) { return moe.route(g, in).ids; });
      ASSERT_EQ(ids.size(), 64u);
      for (std::size_t t = 0; t < 8; ++t) {
        std::set<int32_t> seen;
        for (std::size_t i = 0; i < 8; ++i) {
          int32_t id;
          std::memcpy(&id, &ids[t * 8 + i], sizeof id);
          EXPECT_GE(id, 0);
          EXPECT_LT(id, 64);
          seen.insert(id);
        }
        EXPECT_EQ(seen.size(), 8u) << "token " << t;
      }
      const auto y = run(bench, kNoMatter, x, 48, false, [&](StepGraph& g, Tensor in) { return moe.run(g, in); });
      for (std::size_t i = 0; i < 48; ++i) EXPECT_TRUE(std::isfinite(y[5 * 48 + i])) << "a good row beside bad ones";
    }
  }
}

// ---- keys

struct Keys {
  Keys() {
    hp.arch = "m";
    hp.n_embd = 64;
    hp.n_layer = hp.n_block = 3;
    hp.n_ff = {96, 96, 96};
    hp.n_expert = 8;
    set("expert_used_count", int64_t{2});
    set("expert_feed_forward_length", int64_t{32});
  }
  Keys& set(const std::string& name, MetadataValue value) {
    metadata.set("m." + name, std::move(value));
    return *this;
  }
  FeedForwardSpec good(const MoeRules& rules = {}) const {
    auto spec = FeedForwardSpec::read(hp, metadata, rules);
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return *spec;
  }
  std::string refused() const {
    const auto spec = FeedForwardSpec::read(hp, metadata, {});
    if (spec.ok()) return "nothing";
    EXPECT_EQ(spec.error().code, ErrorCode::kBadModel);
    return spec.error().param;
  }
  HParams hp;
  Metadata metadata;
};

MetadataValue list(std::vector<double> items) {
  MetadataArray array;
  array.items = std::move(items);
  return array;
}

TEST(FeedForwardSpec, ReadsWhatTheFileSaysOverWhatTheFamilyHas) {
  Keys keys;
  FeedForwardSpec spec = keys.good({.gating = Gating::kSigmoid});
  ASSERT_TRUE(spec.moe);
  EXPECT_EQ(spec.moe->gating, Gating::kSigmoid);
  EXPECT_FALSE(spec.moe->norm);
  EXPECT_EQ(spec.moe->scale, 1.0f);
  EXPECT_EQ(spec.moe->n_ff_shared, 0);
  EXPECT_TRUE(spec.has_experts(0));
  keys.set("expert_gating_func", int64_t{4})
      .set("expert_weights_norm", true)
      .set("expert_weights_scale", 2.5)
      .set("leading_dense_block_count", int64_t{1})
      .set("expert_shared_count", int64_t{3})
      .set("expert_group_count", int64_t{4})
      .set("expert_group_used_count", int64_t{2})
      .set("swiglu_clamp_exp", list({0, 0.5, 1}));
  spec = keys.good({.gating = Gating::kSigmoid});
  EXPECT_EQ(spec.moe->gating, Gating::kSqrtSoftplus);
  EXPECT_TRUE(spec.moe->norm);
  EXPECT_EQ(spec.moe->scale, 2.5f);
  EXPECT_EQ(spec.moe->n_ff_shared, 96);
  EXPECT_EQ(spec.moe->n_group, 4);
  EXPECT_EQ(spec.moe->n_group_used, 2);
  EXPECT_FALSE(spec.has_experts(0));
  EXPECT_TRUE(spec.has_experts(1));
  EXPECT_EQ(spec.clamp_experts, (std::vector<float>{0, 0.5f, 1}));
  EXPECT_FALSE(keys.good({.norm = false}).moe->norm);
  keys.set("expert_shared_feed_forward_length", int64_t{40}).set("expert_weights_scale", 0.0);
  EXPECT_EQ(keys.good().moe->n_ff_shared, 40);
  EXPECT_EQ(keys.good().moe->scale, 1.0f);
  keys.hp.n_expert = 0;
  EXPECT_FALSE(keys.good().has_experts(2));
}

TEST(FeedForwardSpec, RefusesImpossibleNumbersByName) {
  const auto refused = [](const std::string& name, MetadataValue value) {
    return Keys().set(name, std::move(value)).refused();
  };
  for (const int64_t n : {0, -1, 9}) EXPECT_EQ(refused("expert_used_count", n), "m.expert_used_count");
  for (const int64_t n : {0, 5, -2}) EXPECT_EQ(refused("expert_gating_func", n), "m.expert_gating_func");
  for (const int64_t n : {3, 8, 16, -4}) EXPECT_EQ(refused("expert_group_count", n), "m.expert_group_count");
  EXPECT_EQ(refused("expert_group_count", int64_t{4}), "m.expert_group_used_count") << "it is missing";
  for (const int64_t n : {0, -1, 4, 5}) {
    Keys keys;
    keys.set("expert_group_count", int64_t{4}).set("expert_group_used_count", n);
    EXPECT_EQ(keys.refused(), "m.expert_group_used_count") << n;
  }
  Keys few;  // two experts are left of which three are to be used
  few.set("expert_group_count", int64_t{4}).set("expert_group_used_count", int64_t{1});
  few.set("expert_used_count", int64_t{3});
  EXPECT_EQ(few.refused(), "m.expert_group_used_count");
  EXPECT_EQ(refused("expert_weights_scale", -1.0), "m.expert_weights_scale");
  EXPECT_EQ(refused("expert_weights_scale", 1e300), "m.expert_weights_scale");
  EXPECT_EQ(refused("expert_weights_norm", std::string("yes")), "m.expert_weights_norm");
  EXPECT_EQ(refused("leading_dense_block_count", int64_t{4}), "m.leading_dense_block_count");
  EXPECT_EQ(refused("expert_shared_count", int64_t{1} << 40), "m.expert_shared_count");
  EXPECT_EQ(refused("swiglu_clamp_exp", list({1, 2})), "m.swiglu_clamp_exp");
  EXPECT_EQ(refused("swiglu_clamp_shexp", list({1, 2, 1e300})), "m.swiglu_clamp_shexp");
  for (const int64_t n : {int64_t{1}, int64_t{1025}, int64_t{65536}}) {
    Keys keys;
    keys.hp.n_expert = n;
    EXPECT_EQ(keys.refused(), "m.expert_count");
  }
}

}  // namespace
}  // namespace hocket::test
