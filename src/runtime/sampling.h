// runtime/sampling.h: from a row of logits to a token.
//
// The chain is: suppressed ids and logit bias → constraint mask → penalties → DRY → top-n-sigma → top-k → typical →
// top-p → min-p → XTC → temperature (static or dynamic) → draw; the middle part is a list that the user may reorder.
// Mirostat replaces it. Definitions: language-models.md §6.2 (docs/sampling.md).
//
// Owns     history counts, generator, scratch for one row.
// Threads  one user at a time.
// Errors   create(): kInvalid naming the field. sample(): kInternal when nothing is left to draw from.
// Cost     a few passes over the vocabulary and a partial sort; memory for a row is kept from call to call. Only typ_p,
//          top_p and xtc in front of top_k (or without it) need an exponential for every token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/token_constraint.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct LogitBias {
  TokenId id;
  float bias;  // -infinity bans
};

struct SamplingParams {
  int64_t seed = -1;  // -1: random
  float temperature = 0.8f;
  float dynatemp_range = 0.0f, dynatemp_exponent = 1.0f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical_p = 1.0f;
  float top_n_sigma = -1.0f;
  float xtc_probability = 0.0f, xtc_threshold = 0.1f;
  float repeat_penalty = 1.0f, frequency_penalty = 0.0f, presence_penalty = 0.0f;
  int penalty_last_n = 64;  // -1: the whole context
  float dry_multiplier = 0.0f, dry_base = 1.75f;
  int dry_allowed_length = 2, dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers{"\n", ":", "\"", "*"};
  int mirostat = 0;
  float mirostat_tau = 5.0f, mirostat_eta = 0.1f;
  int min_keep = 0;
  bool ignore_eos = false;
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> samplers{"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                                    "top_p",     "min_p", "xtc",         "temperature"};
};

struct Candidate {
  TokenId id;
  float logit;
  float p;
};

// Whether every number is in its range, without a vocabulary at hand. Sampler::create() checks this, too.
Result<void> check_sampling_ranges(const SamplingParams& params);

class Sampler {
 public:
  // `tokenizer` must outlive the sampler. n_vocab is the width of a row (≥ tokenizer.size(); ids beyond are never
  // drawn).
  static Result<std::unique_ptr<Sampler>> create(const SamplingParams& params, const Tokenizer& tokenizer,
                                                 std::size_t n_vocab, std::size_t n_ctx);
  virtual ~Sampler() = default;

  // Draws the next token; `logits` [n_vocab] is not changed. `constraint` may be nullptr. Does not advance anything but
  // the generator: call accept() with the token that is really used.
  virtual Result<TokenId> sample(std::span<const float> logits, TokenConstraint* constraint) = 0;
  // Adds to the history (prompt tokens too) and to mirostat's state. Constraints are advanced by the caller.
  virtual void accept(TokenId id) = 0;
  // What is left after the chain of the last sample(), most probable first (tests, post-sampling probabilities).
  virtual std::span<const Candidate> candidates() const = 0;
  virtual uint64_t seed() const = 0;  // the one really used
  // A copy with its own generator started from `seed` (n > 1).
  virtual std::unique_ptr<Sampler> clone(uint64_t seed) const = 0;
};

// Log-probabilities of raw logits (before the chain), as OpenAI's `logprobs` wants them.
struct TokenLogprob {
  TokenId id;
  float logprob;
};
struct RowLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // descending
};
RowLogprobs row_logprobs(std::span<const float> logits, TokenId chosen, std::size_t n_top);

}  // namespace hocket
