#include "engine/generation_job.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "engine/prefill_log.h"

namespace hocket {

GenerationJob::GenerationJob(std::shared_ptr<JobControl> control, const Tokenizer& tokenizer, GenerationPlan plan,
                             std::shared_ptr<ReplyChannel> channel)
    : Job(std::move(control)), tokenizer_(&tokenizer), plan_(std::move(plan)), channel_(std::move(channel)) {}

Result<void> GenerationJob::run(PromptLane& lane) {
  timings_.queue_ms = ms_since(control().queued);
  process_ = process_usage();
  for (std::size_t i = 0; i < plan_.prompts.size(); ++i) TRY(run_prompt(lane, i));
  return {};
}

Job::Numbers GenerationJob::numbers() {
  timings_.total_ms = ms_since(control().submitted);
  const RequestOutcome outcome = reason_ == FinishReason::kLength      ? RequestOutcome::kLength
                                 : reason_ == FinishReason::kToolCalls ? RequestOutcome::kToolCalls
                                                                       : RequestOutcome::kStop;
  return {outcome, usage_, timings_};
}

void GenerationJob::complete() {
  ReplyDetails details;
  details.max_tokens = max_tokens_.value_or(0);
  details.context_full = context_full_;
  details.sampling = plan_.sampling;
  const ProcessUsage now = process_usage();
  details.rss_bytes = now.rss_bytes;
  details.peak_rss_bytes = now.peak_rss_bytes;
  details.minor_faults = now.minor_faults - process_.minor_faults;
  details.major_faults = now.major_faults - process_.major_faults;
  channel_->push(ReplyDone{usage_, timings_, std::make_shared<ReplyDetails>(std::move(details))});
}

void GenerationJob::fail(Error error) {
  channel_->fail(std::move(error));
}

Result<void> GenerationJob::run_prompt(PromptLane& lane, std::size_t prompt_index) {
  const PreparedPrompt& prompt = plan_.prompts[prompt_index];
  const std::size_t first_choice = prompt_index * plan_.n_choices;
  control().phase = RequestPhase::kPrefill;
  std::vector<TokenLogprobs> echoed;
  TRY_ASSIGN(const PromptLane::Filled filled, fill(lane, prompt, echoed));
  n_prompt_done_ += prompt.ids.size();
  usage_.prompt_tokens += prompt.ids.size();
  usage_.cached_tokens += filled.n_cached;
  if (plan_.echo) push_echo(prompt, first_choice, echoed);

  const std::size_t room = plan_.n_ctx - prompt.ids.size();
  const std::size_t max_tokens = std::min(plan_.max_tokens.value_or(room), room);
  max_tokens_ = std::min(max_tokens_.value_or(max_tokens), max_tokens);
  if (max_tokens == 0) {
    for (std::size_t i = 0; i < plan_.n_choices; ++i) {
      channel_->push(ChoiceFinished{first_choice + i, FinishReason::kLength, {}});
    }
    return {};
  }

  control().phase = RequestPhase::kDecode;
  std::vector<ChoiceRun> choices = make_choices(prompt, first_choice, max_tokens);
  // As many at once as certainly fit beside the prompt.
  const std::size_t n_fit = (lane.runner().memory().n_cells() - prompt.ids.size()) / max_tokens;
  const std::size_t n_together = std::clamp<std::size_t>(n_fit, 1, lane.runner().options().n_batch);
  for (std::size_t at = 0; at < choices.size(); at += n_together) {
    const std::size_t n = std::min(n_together, choices.size() - at);
    TRY(decode(lane, prompt, max_tokens, filled.last_row, std::span(choices).subspan(at, n)));
  }
  for (const ChoiceRun& choice : choices) {
    usage_.completion_tokens += choice.n_tokens();
    usage_.reasoning_tokens += choice.n_reasoning_tokens();
    reason_ = choice.finish_reason();
    context_full_ = context_full_ || (reason_ == FinishReason::kLength && max_tokens == room);
  }
  return {};
}

Result<PromptLane::Filled> GenerationJob::fill(PromptLane& lane, const PreparedPrompt& prompt,
                                               std::vector<TokenLogprobs>& echoed) {
  const auto start = Clock::now();
  PrefillLog progress(control().id, prompt.ids.size(), start);
  PrefillHooks hooks;
  hooks.on_progress = [&](std::size_t n_done) -> Result<void> {
    control().prompt_done = n_prompt_done_ + n_done;
    if (prompt.ids.size() > lane.runner().options().n_batch) {
      channel_->push(ProgressEvent{n_prompt_done_ + n_done, control().prompt_total});
    }
    if (const auto line = progress.line(n_done, Clock::now())) log_info("{}", *line);
    return control().check();
  };
  if (plan_.echo && plan_.generation.top_logprobs) {
    // The row of a token tells the next one; the first has none.
    const auto n_top = static_cast<std::size_t>(*plan_.generation.top_logprobs);
    if (prompt.n_added == 0) {
      echoed.push_back(
          {{prompt.ids[0], tokenizer_->piece(prompt.ids[0], true), std::numeric_limits<double>::quiet_NaN()}, {}});
    }
    hooks.every_row = true;
    hooks.on_rows = [&, n_top](std::size_t first, std::size_t n_rows) -> Result<void> {
      for (std::size_t i = 0; i < n_rows && first + i + 1 < prompt.ids.size(); ++i) {
        std::span<const float> logits = lane.runner().output(i);
        logits = logits.first(std::min(logits.size(), tokenizer_->size()));
        const RowLogprobs row = row_logprobs(logits, prompt.ids[first + i + 1], n_top);
        echoed.push_back(describe_logprobs(*tokenizer_, row));
      }
      return {};
    };
  }
  TRY_ASSIGN(const PromptLane::Filled filled, lane.prefill(prompt.ids, plan_.tenant, hooks, control().cancel));
  control().prompt_done = n_prompt_done_ + prompt.ids.size();
  timings_.prefill_ms += ms_since(start);
  timings_.prefill_tokens += prompt.ids.size() - filled.n_cached;
  return filled;
}

void GenerationJob::push_echo(const PreparedPrompt& prompt, std::size_t first_choice,
                              const std::vector<TokenLogprobs>& echoed) {
  for (std::size_t i = 0; i < plan_.n_choices; ++i) {
    ReplyDelta delta;
    delta.text = prompt.text;
    channel_->push(DeltaEvent{first_choice + i, {std::move(delta)}, echoed});
  }
}

std::vector<ChoiceRun> GenerationJob::make_choices(const PreparedPrompt& prompt, std::size_t first_choice,
                                                   std::size_t max_tokens) {
  const uint64_t seed = plan_.sampler->seed();
  GenerationOptions options = plan_.generation;
  options.max_tokens = max_tokens;
  std::vector<ChoiceRun> choices;
  choices.reserve(plan_.n_choices);
  for (std::size_t i = 0; i < plan_.n_choices; ++i) {
    std::unique_ptr<Sampler> sampler = plan_.sampler->clone(seed + first_choice + i);
    for (const TokenId id : prompt.ids) sampler->accept(id);
    std::unique_ptr<ReplyParser> parser;
    if (plan_.format) parser = ReplyParser::create(*plan_.format, plan_.tools, plan_.opens_thinking);
    Generation generation(*tokenizer_, std::move(sampler), plan_.constraint ? plan_.constraint->clone() : nullptr,
                          options);
    choices.emplace_back(first_choice + i, *tokenizer_, std::move(generation), std::move(parser), plan_.opens_thinking,
                         *channel_);
  }
  return choices;
}

Result<void> GenerationJob::decode(PromptLane& lane, const PreparedPrompt& prompt, std::size_t max_tokens,
                                   std::span<const float> first_row, std::span<ChoiceRun> choices) {
  const bool forked = plan_.n_choices > 1;
  if (forked) {
    lane.clear_forks();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      TRY(lane.runner().memory().fork(PromptLane::kPromptSeq, sequence_of(i)));
    }
  }
  for (ChoiceRun& choice : choices) TRY(choice.advance(first_row));
  if (timings_.ttft_ms == 0) timings_.ttft_ms = ms_since(control().submitted);
  control().completion_tokens += choices.size();

  const auto start = Clock::now();
  if (lane.drafting() && !forked) {
    TRY(decode_with_drafts(lane, prompt, max_tokens, choices.front()));
  } else {
    TRY(decode_together(lane, choices));
  }
  timings_.decode_ms += ms_since(start);
  return {};
}

SeqId GenerationJob::sequence_of(std::size_t choice) const {
  return plan_.n_choices > 1 ? static_cast<SeqId>(choice + 1) : PromptLane::kPromptSeq;
}

Result<void> GenerationJob::decode_together(PromptLane& lane, std::span<ChoiceRun> choices) {
  LmRunner& runner = lane.runner();
  std::vector<BatchToken> batch;
  std::vector<std::size_t> active;
  while (true) {
    TRY(control().check());
    batch.clear();
    active.clear();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].ended()) continue;
      batch.push_back({choices[i].last_token(), sequence_of(i), true});
      active.push_back(i);
    }
    if (active.empty()) return {};
    const auto step_start = Clock::now();
    TRY(runner.step(batch, StepOutput::kLogits, control().cancel));
    timings_.decode_compute_ms += ms_since(step_start);
    for (std::size_t k = 0; k < active.size(); ++k) TRY(choices[active[k]].advance(runner.output(k)));
    timings_.decode_tokens += active.size();
    control().completion_tokens += active.size();
  }
}

Result<void> GenerationJob::decode_with_drafts(PromptLane& lane, const PreparedPrompt& prompt, std::size_t max_tokens,
                                               ChoiceRun& choice) {
  std::vector<TokenId> history = prompt.ids;
  history.push_back(choice.last_token());
  SpeculativeDecoder decoder(lane.runner(), PromptLane::kPromptSeq, *lane.drafting()->source, lane.drafting()->settings,
                             std::move(history));
  const auto draw = [&](std::span<const float> row) -> Result<SpeculativeDecoder::Drawn> {
    TRY(choice.advance(row));
    ++timings_.decode_tokens;
    ++control().completion_tokens;
    return SpeculativeDecoder::Drawn{choice.last_token(), choice.ended()};
  };
  const auto check = [&] { return control().check(); };
  while (!choice.ended()) {
    TRY(check());
    const DraftCounts before = decoder.counts();
    const auto step_start = Clock::now();
    TRY(decoder.step(max_tokens - choice.n_tokens(), draw, control().cancel, check));
    timings_.decode_compute_ms += ms_since(step_start);
    const std::size_t n_drafted = decoder.counts().n_drafted - before.n_drafted;
    const std::size_t n_accepted = decoder.counts().n_accepted - before.n_accepted;
    timings_.drafted_tokens += n_drafted;
    timings_.accepted_tokens += n_accepted;
    control().drafted_tokens += n_drafted;
    control().accepted_tokens += n_accepted;
  }
  return {};
}

}  // namespace hocket
