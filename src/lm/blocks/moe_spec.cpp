#include "lm/blocks/moe_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace hocket {

namespace {

// More than any model has. ggml's work memory grows with experts × used × tokens.
constexpr int64_t kMaxExperts = 1024, kMaxUsed = 64;
constexpr int64_t kMaxWidth = 1 << 22;

Error bad_key(const std::string& key, std::string why) {
  return Error(ErrorCode::kBadModel, fmt::format("{}: {}", key, why), key);
}

Result<void> read_groups(const HParams& hp, const Metadata& metadata, MoeSpec& spec) {
  const std::string count_key = hp.key("expert_group_count"), used_key = hp.key("expert_group_used_count");
  TRY_ASSIGN(const int64_t n_group, metadata.integer_or(count_key, 0, 0, kMaxExperts));
  if (n_group <= 1) return {};
  if (n_group >= spec.n_expert || spec.n_expert % n_group != 0)
    return bad_key(count_key, fmt::format("{} experts do not form {} groups", spec.n_expert, n_group));
  TRY_ASSIGN(const int64_t n_used, metadata.integer(used_key));
  if (n_used < 1 || n_used >= n_group)
    return bad_key(used_key, fmt::format("{} of {} groups cannot be used", n_used, n_group));
  if (const int64_t n_left = spec.n_expert / n_group * n_used; spec.n_used > n_left)
    return bad_key(used_key,
                   fmt::format("{} groups have {} experts, and a token uses {}", n_used, n_left, spec.n_used));
  spec.n_group = n_group;
  spec.n_group_used = n_used;
  return {};
}

Result<void> read_shared(const HParams& hp, const Metadata& metadata, MoeSpec& spec) {
  TRY_ASSIGN(spec.n_ff_shared, metadata.integer_or(hp.key("expert_shared_feed_forward_length"), 0, 0, kMaxWidth));
  const std::string key = hp.key("expert_shared_count");
  TRY_ASSIGN(const int64_t n_shared, metadata.integer_or(key, 0, 0, kMaxExperts));
  if (spec.n_ff_shared > 0 || n_shared == 0) return {};
  if (spec.n_ff == 0) return bad_key(key, fmt::format("the size of {} shared experts is not in the file", n_shared));
  if (spec.n_ff > kMaxWidth / n_shared) return bad_key(key, fmt::format("{} is too large", n_shared));
  spec.n_ff_shared = n_shared * spec.n_ff;
  return {};
}

}  // namespace

Result<MoeSpec> MoeSpec::read(const HParams& hp, const Metadata& metadata, const MoeRules& rules) {
  MoeSpec spec;
  spec.n_embd = hp.n_embd;
  spec.n_expert = hp.n_expert;
  spec.gated_shared = rules.gated_shared;
  spec.activation = rules.activation;
  spec.bias = rules.bias;
  spec.f32_sums = rules.f32_sums;
  if (spec.n_expert < 2 || spec.n_expert > kMaxExperts)
    return bad_key(hp.key("expert_count"), fmt::format("{} is not from 2 to {}", spec.n_expert, kMaxExperts));
  TRY_ASSIGN(spec.n_used, metadata.integer(hp.key("expert_used_count"), 1, std::min(spec.n_expert, kMaxUsed)));
  TRY_ASSIGN(spec.n_ff, metadata.integer_or(hp.key("expert_feed_forward_length"), 0, 0, kMaxWidth));
  TRY(read_groups(hp, metadata, spec));
  TRY(read_shared(hp, metadata, spec));

  const std::string gating_key = hp.key("expert_gating_func");
  TRY_ASSIGN(const int64_t gating, metadata.integer_or(gating_key, static_cast<int64_t>(rules.gating), 1, 4));
  spec.gating = static_cast<Gating>(gating);
  TRY_ASSIGN(const bool norm, metadata.boolean_or(hp.key("expert_weights_norm"), false));
  spec.norm = rules.norm.value_or(norm);
  const std::string scale_key = hp.key("expert_weights_scale");
  TRY_ASSIGN(const double scale, metadata.number_or(scale_key, 1.0));
  if (!(scale >= 0 && scale <= std::numeric_limits<float>::max()))
    return bad_key(scale_key, fmt::format("{} is no scale", scale));
  spec.scale = scale == 0 ? 1.0f : static_cast<float>(scale);  // writers put 0 for "none"
  return spec;
}

}  // namespace hocket
