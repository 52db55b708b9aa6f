#include "lm/blocks/feed_forward.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace hocket {

namespace {

// A number per block: a list with an entry for each, or one number for all.
Result<std::vector<float>> per_block(const HParams& hp, const Metadata& metadata, const std::string& name) {
  const std::string key = hp.key(name);
  const auto n_block = static_cast<std::size_t>(hp.n_block);
  std::vector<double> values;
  const MetadataValue* value = metadata.find(key);
  if (value && std::holds_alternative<MetadataArray>(*value)) {
    TRY_ASSIGN(const std::vector<double>* list, metadata.numbers(key));
    values = *list;
  } else {
    TRY_ASSIGN(const double same, metadata.number_or(key, 0.0));
    values.assign(n_block, same);
  }
  if (values.size() != n_block)
    return Error(ErrorCode::kBadModel, fmt::format("{} has {} entries for {} blocks", key, values.size(), n_block),
                 key);
  std::vector<float> floats;
  for (const double v : values) {
    if (!(std::abs(v) <= std::numeric_limits<float>::max()))
      return Error(ErrorCode::kBadModel, fmt::format("{}: {} is too large", key, v), key);
    floats.push_back(static_cast<float>(v));
  }
  return floats;
}

}  // namespace

Result<FeedForwardSpec> FeedForwardSpec::read(const HParams& hp, const Metadata& metadata, const MoeRules& rules) {
  FeedForwardSpec spec;
  spec.n_ff = hp.n_ff;
  spec.dense.n_embd = hp.n_embd;
  spec.dense.activation.kind = rules.activation;
  spec.dense.f32_sums = rules.f32_sums;
  TRY_ASSIGN(spec.clamp_experts, per_block(hp, metadata, "swiglu_clamp_exp"));
  TRY_ASSIGN(spec.clamp_others, per_block(hp, metadata, "swiglu_clamp_shexp"));
  if (hp.n_expert == 0) return spec;
  TRY_ASSIGN(spec.n_leading_dense, metadata.integer_or(hp.key("leading_dense_block_count"), 0, 0, hp.n_block));
  TRY_ASSIGN(spec.moe, MoeSpec::read(hp, metadata, rules));
  return spec;
}

FeedForward FeedForward::make(WeightSet& weights, const std::string& prefix, const FeedForwardSpec& spec,
                              std::size_t il) {
  if (spec.has_experts(il)) {
    MoeSpec moe = *spec.moe;
    if (moe.n_ff == 0) moe.n_ff = spec.n_ff[il];
    moe.clamp = spec.clamp_experts[il];
    moe.clamp_shared = spec.clamp_others[il];
    return Moe::make(weights, prefix, moe);
  }
  MlpSpec dense = spec.dense;
  dense.n_ff = spec.n_ff[il];
  dense.activation.clamp = spec.clamp_others[il];
  return GatedMlp::make(weights, prefix, dense);
}

Tensor FeedForward::run(StepGraph& g, Tensor h) const {
  return std::visit([&](const auto& block) { return block.run(g, h); }, block_);
}

}  // namespace hocket
