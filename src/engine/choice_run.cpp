#include "engine/choice_run.h"

#include <iterator>
#include <utility>

namespace hocket {
namespace {

std::string visible_bytes(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.piece(id, true);
}

}  // namespace

TokenLogprobs describe_logprobs(const Tokenizer& tokenizer, const RowLogprobs& row) {
  TokenLogprobs out;
  out.token = {row.chosen.id, visible_bytes(tokenizer, row.chosen.id), row.chosen.logprob};
  for (const TokenLogprob& other : row.top) {
    // Rows may be wider than the vocabulary.
    if (tokenizer.valid_id(other.id)) {
      out.top.push_back({other.id, visible_bytes(tokenizer, other.id), other.logprob});
    }
  }
  return out;
}

ChoiceRun::ChoiceRun(std::size_t index, const Tokenizer& tokenizer, Generation generation,
                     std::unique_ptr<ReplyParser> parser, bool starts_in_thinking, ReplyChannel& channel)
    : index_(index),
      tokenizer_(&tokenizer),
      generation_(std::move(generation)),
      parser_(std::move(parser)),
      channel_(&channel),
      thinking_(starts_in_thinking) {}

void ChoiceRun::count_reasoning(const std::vector<ReplyDelta>& deltas) {
  // Tokens before the first delta (an opening tag, say) belong to what that delta is.
  ++n_undecided_;
  if (!deltas.empty()) {
    if (deltas.front().kind == ReplyDelta::Kind::kReasoning) n_reasoning_ += n_undecided_;
    n_undecided_ = 0;
    thinking_ = deltas.back().kind == ReplyDelta::Kind::kReasoning;
  } else if (thinking_ || generation_.ended()) {
    if (thinking_) n_reasoning_ += n_undecided_;
    n_undecided_ = 0;
  }
}

void ChoiceRun::emit(std::vector<ReplyDelta> deltas) {
  if (deltas.empty()) return;
  channel_->push(DeltaEvent{index_, std::move(deltas), std::exchange(logprobs_, {})});
}

Result<void> ChoiceRun::advance(std::span<const float> logits) {
  TRY_ASSIGN(GeneratedToken token, generation_.advance(logits));
  if (token.logprobs && token.end != GenerationEnd::kEndToken) {
    logprobs_.push_back(describe_logprobs(*tokenizer_, *token.logprobs));
  }
  std::vector<ReplyDelta> deltas;
  if (parser_) {
    if (!token.text.empty()) deltas = parser_->push(token.text);
    if (ended()) {
      auto rest = parser_->finish();
      deltas.insert(deltas.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
    }
    count_reasoning(deltas);
  } else if (!token.text.empty()) {
    ReplyDelta delta;
    delta.text = std::move(token.text);
    deltas.push_back(std::move(delta));
  }
  emit(std::move(deltas));
  if (ended()) end();
  return {};
}

FinishReason ChoiceRun::finish_reason() const {
  if (generation_.end() == GenerationEnd::kLength) return FinishReason::kLength;
  return parser_ && parser_->n_tool_calls() > 0 ? FinishReason::kToolCalls : FinishReason::kStop;
}

void ChoiceRun::end() {
  // Tokens of a stop string were never shown; others without text of their own still have their log-probabilities.
  if (!logprobs_.empty() && generation_.end() != GenerationEnd::kStopString) {
    channel_->push(DeltaEvent{index_, {}, std::exchange(logprobs_, {})});
  }
  ChoiceFinished finished;
  finished.choice = index_;
  finished.reason = finish_reason();
  if (generation_.end() == GenerationEnd::kStopString) finished.stop_string = generation_.stop_string();
  channel_->push(std::move(finished));
}

}  // namespace hocket
