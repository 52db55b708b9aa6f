#include "runtime/generation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hocket {

Result<void> prefill(LmRunner& runner, SeqId seq, std::span<const TokenId> tokens, const PrefillHooks& hooks,
                     const CancelToken& cancel) {
  const std::size_t n_batch = runner.options().n_batch;
  std::vector<BatchToken> batch;
  std::size_t at = runner.memory().length(seq);
  while (at < tokens.size()) {
    const std::size_t border = (at / n_batch + 1) * n_batch;
    const std::size_t end = std::min(border, tokens.size());
    batch.clear();
    for (std::size_t i = at; i < end; ++i) {
      batch.push_back({tokens[i], seq, hooks.every_row || i + 1 == tokens.size()});
    }
    TRY(runner.step(batch, hooks.output, cancel));
    if (hooks.on_rows) {
      const std::size_t n_rows = runner.n_outputs();
      if (n_rows > 0) TRY(hooks.on_rows(end - n_rows, n_rows));
    }
    at = end;
    if (hooks.on_progress) TRY(hooks.on_progress(at));
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "the request was cancelled");
  }
  return {};
}

Generation::Generation(const Tokenizer& tokenizer, std::unique_ptr<Sampler> sampler,
                       std::unique_ptr<TokenConstraint> constraint, GenerationOptions options)
    : tokenizer_(&tokenizer),
      sampler_(std::move(sampler)),
      constraint_(std::move(constraint)),
      options_(std::move(options)),
      detokenize_(tokenizer, options_.show_special),
      stops_(options_.stops) {
  CHECK(options_.max_tokens > 0);
}

Result<GeneratedToken> Generation::advance(std::span<const float> logits) {
  CHECK(!ended());
  GeneratedToken token;
  TRY_ASSIGN(token.id, sampler_->sample(logits, constraint_.get()));
  last_ = token.id;
  ++n_tokens_;
  if (options_.top_logprobs) {
    // A row may be wider than the vocabulary; what is beyond can never be drawn.
    const std::span<const float> row = logits.first(std::min(logits.size(), tokenizer_->size()));
    token.logprobs = row_logprobs(row, token.id, static_cast<std::size_t>(*options_.top_logprobs));
  }
  if (constraint_) TRY(constraint_->accept(token.id));

  if (tokenizer_->is_end_of_generation(token.id)) {
    end_ = GenerationEnd::kEndToken;
  } else {
    sampler_->accept(token.id);
    token.text = stops_.push(detokenize_.push(token.id));
    if (stops_.stopped()) {
      end_ = GenerationEnd::kStopString;
    } else if (constraint_ && constraint_->complete()) {
      end_ = GenerationEnd::kComplete;
    } else if (n_tokens_ >= options_.max_tokens) {
      end_ = GenerationEnd::kLength;
    }
  }
  if (ended() && end_ != GenerationEnd::kStopString) {
    token.text += stops_.push(detokenize_.finish());
    if (stops_.stopped()) {
      end_ = GenerationEnd::kStopString;
    } else {
      token.text += stops_.finish();
    }
  }
  token.end = end_;
  return token;
}

}  // namespace hocket
