#include "runtime/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "runtime/candidate_set.h"
#include "runtime/dry.h"
#include "runtime/mirostat.h"
#include "runtime/random_stream.h"
#include "runtime/sampling_chain.h"
#include "runtime/sampling_rules.h"
#include "runtime/token_history.h"

namespace hocket {
namespace {

class ChainSampler final : public Sampler {
 public:
  ChainSampler(const SamplingParams& params, std::vector<SamplingStep> steps, const Tokenizer& tokenizer,
               std::size_t n_vocab, std::size_t n_ctx)
      : params_(params),
        steps_(std::move(steps)),
        tokenizer_(&tokenizer),
        n_vocab_(n_vocab),
        seed_(params.seed == -1 ? random_seed() : static_cast<uint64_t>(params.seed)),
        random_(seed_) {
    const auto window = [n_ctx](int last_n) { return last_n < 0 ? n_ctx : static_cast<std::size_t>(last_n); };
    if (params.mirostat > 0) mirostat_.emplace(params.mirostat, params.mirostat_tau, params.mirostat_eta);
    for (const SamplingStep step : steps_) {
      if (mirostat_) break;
      if (step == SamplingStep::kDry) dry_.emplace(params, tokenizer, window(params.dry_penalty_last_n));
      if (step == SamplingStep::kPenalties) {
        penalties_.emplace(window(params.penalty_last_n), params.repeat_penalty, params.frequency_penalty,
                           params.presence_penalty);
      }
    }
    mask_.resize((n_vocab + 31) / 32);
  }

  Result<TokenId> sample(std::span<const float> logits, TokenConstraint* constraint) override {
    if (logits.size() < n_vocab_) {
      return Error(ErrorCode::kInternal,
                   fmt::format("a row of {} logits for a vocabulary of {}", logits.size(), n_vocab_), "logits");
    }
    drawn_ = false;
    TRY(set_.start(logits.first(tokenizer_->size())));
    for (const LogitBias& bias : params_.logit_bias) {
      float& logit = set_.row()[static_cast<std::size_t>(bias.id)];
      logit += bias.bias;
    }
    for (const TokenId id : tokenizer_->suppressed()) set_.exclude(id);
    // Where nothing else may follow, the end is the end.
    if (params_.ignore_eos && !(constraint && constraint->complete())) {
      for (const TokenId id : tokenizer_->end_of_generation()) set_.exclude(id);
    }
    if (constraint) {
      TRY_ASSIGN(const bool masked, constraint->allowed(mask_));
      if (masked) set_.keep_allowed(mask_);
    }
    if (mirostat_) {
      apply_temperature(set_, params_.temperature);
      mirostat_->truncate(set_, tokenizer_->size());
    } else {
      for (const SamplingStep step : steps_) apply(step);
    }
    return draw();
  }

  void accept(TokenId id) override {
    if (!tokenizer_->valid_id(id)) return;
    if (penalties_) penalties_->accept(id);
    if (dry_) dry_->accept(id);
    if (mirostat_ && drawn_) {
      for (const Candidate& c : set_.list()) {
        if (c.id == id) mirostat_->accept(c.p);
      }
    }
    drawn_ = false;
  }

  std::span<const Candidate> candidates() const override {
    set_.sort_front(set_.size());
    return set_.list();
  }

  uint64_t seed() const override { return seed_; }

  std::unique_ptr<Sampler> clone(uint64_t seed) const override {
    auto copy = std::make_unique<ChainSampler>(*this);
    copy->seed_ = seed;
    copy->random_ = RandomStream(seed);
    return copy;
  }

 private:
  void apply(SamplingStep step) {
    const auto min_keep = static_cast<std::size_t>(params_.min_keep);
    switch (step) {
      case SamplingStep::kPenalties:
        return penalties_->apply(set_);
      case SamplingStep::kDry:
        return dry_->apply(set_);
      case SamplingStep::kTopNSigma:
        return apply_top_n_sigma(set_, params_.top_n_sigma);
      case SamplingStep::kTopK:
        return apply_top_k(set_, params_.top_k);
      case SamplingStep::kTypical:
        return apply_typical(set_, params_.typical_p, min_keep);
      case SamplingStep::kTopP:
        return apply_top_p(set_, params_.top_p, min_keep);
      case SamplingStep::kMinP:
        return apply_min_p(set_, params_.min_p, min_keep);
      case SamplingStep::kXtc:
        if (random_.uniform() < params_.xtc_probability) apply_xtc(set_, params_.xtc_threshold, min_keep);
        return;
      case SamplingStep::kTemperature:
        return apply_dynamic_temperature(set_, params_.temperature, params_.dynatemp_range, params_.dynatemp_exponent);
    }
  }

  Error nothing_left() const {
    const bool bans = std::any_of(params_.logit_bias.begin(), params_.logit_bias.end(),
                                  [](const LogitBias& bias) { return std::isinf(bias.bias); });
    if (bans || params_.ignore_eos)
      return Error(ErrorCode::kInvalid, "no token is left to draw: the request bans all that its format allows here",
                   bans ? "logit_bias" : "ignore_eos");
    return Error(ErrorCode::kInternal, "no token is left to draw: constraint and model exclude all", "logits");
  }

  Result<TokenId> draw() {
    set_.softmax();
    const std::vector<Candidate>& all = set_.list();
    if (all.empty()) return nothing_left();
    drawn_ = true;
    double left = random_.uniform();
    const Candidate* last = nullptr;  // where rounding ends when the probabilities sum to a little less than 1
    for (const Candidate& c : all) {
      if (!(c.p > 0)) continue;
      last = &c;
      left -= c.p;
      if (left < 0) break;
    }
    if (!last) return Error(ErrorCode::kInternal, "the probabilities are not numbers", "logits");
    return last->id;
  }

  SamplingParams params_;
  std::vector<SamplingStep> steps_;
  const Tokenizer* tokenizer_;
  std::size_t n_vocab_;
  uint64_t seed_;
  RandomStream random_;
  std::optional<Penalties> penalties_;
  std::optional<Dry> dry_;
  std::optional<Mirostat> mirostat_;
  std::vector<uint32_t> mask_;
  mutable CandidateSet set_;  // candidates() sorts late
  bool drawn_ = false;        // accept() belongs to the last sample()
};

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::create(const SamplingParams& params, const Tokenizer& tokenizer,
                                                 std::size_t n_vocab, std::size_t n_ctx) {
  CHECK(n_vocab >= tokenizer.size());
  TRY(check_sampling(params, tokenizer));
  TRY_ASSIGN(std::vector<SamplingStep> steps, sampling_steps(params));
  return std::unique_ptr<Sampler>(std::make_unique<ChainSampler>(params, std::move(steps), tokenizer, n_vocab, n_ctx));
}

}  // namespace hocket
