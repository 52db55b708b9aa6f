#include "engine/generation_job.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"

namespace hocket {

GenerationJob::GenerationJob(std::shared_ptr<JobControl> control, const Tokenizer& tokenizer, LaneMemory& memory,
                             GenerationPlan plan, std::shared_ptr<ReplyChannel> channel)
    : Job(std::move(control)),
      tokenizer_(&tokenizer),
      memory_(&memory),
      plan_(std::move(plan)),
      channel_(std::move(channel)) {}

// ---- its lane

std::size_t GenerationJob::max_tokens(const PreparedPrompt& prompt) const {
  const std::size_t room = plan_.n_ctx - prompt.ids.size();
  return std::min(plan_.max_tokens.value_or(room), room);
}

std::size_t GenerationJob::n_together(const PreparedPrompt& prompt) const {
  LmRunner& runner = memory_->runner();
  const std::size_t n_most = std::min({plan_.n_choices, runner.options().n_batch, runner.memory().n_seqs() - 1});
  const std::size_t n_tokens = max_tokens(prompt);
  if (n_tokens == 0) return 1;
  return std::clamp<std::size_t>((plan_.n_ctx - prompt.ids.size()) / n_tokens, 1, n_most);
}

LaneDemand GenerationJob::demand() const {
  LaneDemand demand;
  for (const PreparedPrompt& prompt : plan_.prompts) {
    demand.n_cells = std::max(demand.n_cells, prompt.ids.size() + n_together(prompt) * max_tokens(prompt));
    if (forks()) demand.n_sequences = std::max(demand.n_sequences, 1 + n_together(prompt));
  }
  return demand;
}

Result<void> GenerationJob::start() {
  timings_.queue_ms = ms_since(control().queued);
  process_ = process_usage();
  TRY_ASSIGN(prompt_seq_, memory_->take_sequence());
  for (std::size_t i = 1; i < demand().n_sequences; ++i) {
    TRY_ASSIGN(Sequence seq, memory_->take_sequence());
    choice_seqs_.push_back(std::move(seq));
  }
  return begin_prompt();
}

void GenerationJob::stop() {
  decoder_.reset();
  prompt_run_.reset();
  drafts_ = DraftLease();
  choice_seqs_.clear();
  prompt_seq_ = Sequence();
}

Result<StepWish> GenerationJob::wish() {
  TRY(advance());
  if (done()) return StepWish();
  if (!control().flow->may_go_on()) {
    control().phase = RequestPhase::kPaused;
    return StepWish();
  }
  control().phase = prompt_run_->complete() ? RequestPhase::kDecode : RequestPhase::kPrefill;
  if (!prompt_run_->complete()) return prompt_run_->wish();
  StepWish wish{StepWish::Kind::kDecode, 0, StepOutput::kLogits};
  if (decoder_) {
    const std::size_t n_left = max_tokens(prompt()) - group().front().n_tokens();
    TRY_ASSIGN(const auto tokens, decoder_->prepare(n_left, cancel(), [&] { return check(); }));
    wish.n_tokens = tokens.size();
    wish.output = decoder_->output();
  } else {
    for (const ChoiceRun& choice : group()) wish.n_tokens += choice.ended() ? 0 : 1;
  }
  return wish;
}

void GenerationJob::add_to(std::vector<BatchToken>& batch) {
  if (!prompt_run_->complete()) return prompt_run_->add_to(batch);
  if (decoder_) {
    for (const TokenId id : decoder_->prepared()) batch.push_back({id, prompt_seq_.id(), true});
    return;
  }
  for (std::size_t i = 0; i < group_size_; ++i)
    if (!group()[i].ended()) batch.push_back({group()[i].last_token(), sequence_of(i), true});
}

Result<void> GenerationJob::take(const StepRows& rows, const StepFacts& facts) {
  ++control().n_steps;
  if (!prompt_run_->complete()) return take_prompt(rows);
  timings_.decode_compute_ms += facts.step_ms;
  return decoder_ ? take_with_drafts(rows) : take_tokens(rows);
}

Result<void> GenerationJob::settle() {
  if (decoder_) TRY(decoder_->settle(cancel()));
  return advance();
}

// ---- a prompt

Result<void> GenerationJob::begin_prompt() {
  const std::vector<TokenId>& ids = prompt().ids;
  control().phase = RequestPhase::kPrefill;
  phase_start_ = Clock::now();
  prefill_log_.emplace(control().id, ids.size(), phase_start_);
  memory_->runner().memory().clear(prompt_seq_.id());
  PromptRunOptions options;
  options.every_row = plan_.echo && plan_.generation.top_logprobs.has_value();
  options.reuse = !options.every_row && plan_.serving.cache_prompt;
  options.any_lineage = plan_.serving.reuse_generated_state;
  options.message_ends = prompt().message_ends;
  if (plan_.session) {
    options.saved = plan_.session->match().state;
    options.n_saved = plan_.session->match().n_tokens;
  }
  prompt_run_.emplace(*memory_, prompt_seq_.id(), ids, tenant(), options);
  TRY(prompt_run_->start());
  if (!forks()) {
    drafts_ = DraftLease();
    TRY_ASSIGN(drafts_, memory_->drafts().lease(ids, tenant(), prompt_run_->n_cached()));
    prompt_run_->set_source(drafts_.get());
  }
  echoed_.clear();
  if (options.every_row && prompt().n_added == 0) {
    // The row of a token tells the next one; the first has none.
    echoed_.push_back({{ids[0], tokenizer_->piece(ids[0], true), std::numeric_limits<double>::quiet_NaN()}, {}});
  }
  return {};
}

Result<void> GenerationJob::take_prompt(const StepRows& rows) {
  const std::vector<TokenId>& ids = prompt().ids;
  const std::size_t first = prompt_run_->n_done();
  TRY(prompt_run_->take(rows));
  const std::size_t n_done = prompt_run_->n_done();
  if (plan_.echo && plan_.generation.top_logprobs) {
    const auto n_top = static_cast<std::size_t>(*plan_.generation.top_logprobs);
    for (std::size_t i = 0; i < rows.n_outputs() && first + i + 1 < ids.size(); ++i) {
      std::span<const float> logits = rows.output(i);
      logits = logits.first(std::min(logits.size(), tokenizer_->size()));
      echoed_.push_back(describe_logprobs(*tokenizer_, row_logprobs(logits, ids[first + i + 1], n_top)));
    }
  }
  control().prompt_done = n_prompt_done_ + n_done;
  if (ids.size() > memory_->n_chunk()) channel_->push(ProgressEvent{n_prompt_done_ + n_done, control().prompt_total});
  if (const auto line = prefill_log_->line(n_done, Clock::now())) log_info("{}", *line);
  return {};
}

Result<void> GenerationJob::advance() {
  while (!done() && prompt_run_->complete()) {
    if (choices_.empty()) {
      TRY(begin_choices());
    } else if (std::any_of(group().begin(), group().end(), [](const ChoiceRun& choice) { return !choice.ended(); })) {
      return {};
    } else if (end_group(); group_first_ < choices_.size()) {
      TRY(begin_group());
    } else {
      end_prompt();
    }
    if (choices_.empty() && !done()) TRY(begin_prompt());
  }
  return {};
}

Result<void> GenerationJob::begin_choices() {
  const std::size_t n_tokens = prompt().ids.size();
  timings_.prefill_ms += ms_since(phase_start_);
  timings_.prefill_tokens += n_tokens - prompt_run_->n_cached();
  n_prompt_done_ += n_tokens;
  control().prompt_done = n_prompt_done_;
  usage_.prompt_tokens += n_tokens;
  usage_.cached_tokens += prompt_run_->n_cached();
  n_generated_cached_ += prompt_run_->n_generated();
  strict_ = strict_ && prompt_run_->n_strict() == n_tokens;
  from_session_ = prompt_run_->from_saved();
  restore_ms_ = prompt_run_->restore_ms();
  if (plan_.session) {
    if (from_session_) plan_.session->note_restored();
    plan_.session->keep_prompt(*memory_, prompt_seq_.id(), *prompt_run_, prompt().ids, n_tokens + max_tokens(prompt()));
  }
  // Several prompts of one request that fared differently.
  const CacheStatus mixed = usage_.cached_tokens > 0 ? CacheStatus::kPrefix : CacheStatus::kMiss;
  cache_status_ =
      cache_status_.value_or(prompt_run_->status()) == prompt_run_->status() ? prompt_run_->status() : mixed;
  const std::size_t first_choice = at_ * plan_.n_choices;
  if (plan_.echo) push_echo(first_choice);

  const std::size_t n_most = max_tokens(prompt());
  max_tokens_ = std::min(max_tokens_.value_or(n_most), n_most);
  if (n_most == 0) {
    for (std::size_t i = 0; i < plan_.n_choices; ++i)
      channel_->push(ChoiceFinished{first_choice + i, FinishReason::kLength, {}});
    ++at_;
    return {};
  }
  control().phase = RequestPhase::kDecode;
  choices_ = make_choices();
  history_ = prompt().ids;
  group_first_ = 0;
  return begin_group();
}

void GenerationJob::end_prompt() {
  keep_continuation();
  const bool to_the_end = max_tokens(prompt()) == plan_.n_ctx - prompt().ids.size();
  for (const ChoiceRun& choice : choices_) {
    usage_.completion_tokens += choice.n_tokens();
    usage_.reasoning_tokens += choice.n_reasoning_tokens();
    reason_ = choice.finish_reason();
    context_full_ = context_full_ || (reason_ == FinishReason::kLength && to_the_end);
  }
  choices_.clear();
  ++at_;
}

void GenerationJob::keep_continuation() {
  if (forks() || !plan_.serving.cache_prompt) return;
  if (!plan_.serving.reuse_generated_state && !memory_->prefixes().rules().exact) return;
  // The token drawn last is never evaluated only to be kept.
  const std::span<const TokenId> held = std::span(history_).first(memory_->runner().memory().length(prompt_seq_.id()));
  const PrefixCache::Lineage lineage{prompt_run_->n_strict(), prompt().ids.size()};
  if (memory_->prefixes().record(prompt_seq_.id(), held, tenant(), lineage, {})) n_continuation_ += held.size();
}

void GenerationJob::keep_for_session() {
  const SeqId seq = sequence_of(0);
  const std::span<const TokenId> held = std::span(history_).first(memory_->runner().memory().length(seq));
  plan_.session->keep_answer(*memory_, seq, *prompt_run_, prompt().ids.size(), held);
}

void GenerationJob::note_token() {
  if (group_first_ == 0) history_.push_back(choices_.front().last_token());
}

void GenerationJob::push_echo(std::size_t first_choice) {
  for (std::size_t i = 0; i < plan_.n_choices; ++i) {
    ReplyDelta delta;
    delta.text = prompt().text;
    channel_->push(DeltaEvent{first_choice + i, {std::move(delta)}, echoed_});
  }
}

std::vector<ChoiceRun> GenerationJob::make_choices() {
  const std::size_t first_choice = at_ * plan_.n_choices;
  const uint64_t seed = plan_.sampler->seed();
  GenerationOptions options = plan_.generation;
  options.max_tokens = max_tokens(prompt());
  std::vector<ChoiceRun> choices;
  choices.reserve(plan_.n_choices);
  for (std::size_t i = 0; i < plan_.n_choices; ++i) {
    std::unique_ptr<Sampler> sampler = plan_.sampler->clone(seed + first_choice + i);
    for (const TokenId id : prompt().ids) sampler->accept(id);
    std::unique_ptr<ReplyParser> parser;
    if (plan_.format) parser = ReplyParser::create(*plan_.format, plan_.tools, plan_.opens_thinking);
    Generation generation(*tokenizer_, std::move(sampler), plan_.constraint ? plan_.constraint->clone() : nullptr,
                          options);
    choices.emplace_back(first_choice + i, *tokenizer_, std::move(generation), std::move(parser), plan_.opens_thinking,
                         *channel_);
  }
  return choices;
}

// ---- choices that go on together

Result<void> GenerationJob::begin_group() {
  group_size_ = std::min(n_together(prompt()), choices_.size() - group_first_);
  SequenceMemory& memory = memory_->runner().memory();
  if (forks()) {
    for (const Sequence& seq : choice_seqs_) memory.clear(seq.id());
    for (std::size_t i = 0; i < group_size_; ++i) TRY(memory.fork(prompt_seq_.id(), sequence_of(i)));
  }
  for (ChoiceRun& choice : group()) TRY(choice.advance(prompt_run_->last_row()));
  if (timings_.ttft_ms == 0) timings_.ttft_ms = ms_since(control().submitted);
  control().completion_tokens += group_size_;
  note_token();
  phase_start_ = Clock::now();
  if (DraftSource* source = drafts_.get()) {
    decoder_.emplace(memory_->runner(), prompt_seq_.id(), *source, plan_.drafts, history_);
  }
  return {};
}

void GenerationJob::end_group() {
  timings_.decode_ms += ms_since(phase_start_);
  decoder_.reset();
  if (plan_.session && group_first_ == 0) keep_for_session();
  group_first_ += group_size_;
}

Result<void> GenerationJob::take_tokens(const StepRows& rows) {
  std::size_t row = 0;
  const bool first_goes_on = !group().front().ended();
  for (ChoiceRun& choice : group())
    if (!choice.ended()) TRY(choice.advance(rows.output(row++)));
  if (first_goes_on) note_token();
  timings_.decode_tokens += row;
  control().completion_tokens += row;
  return {};
}

Result<void> GenerationJob::take_with_drafts(const StepRows& rows) {
  ChoiceRun& choice = group().front();
  const DraftCounts before = decoder_->counts();
  const Result<void> taken = decoder_->take(rows, [&](std::span<const float> row) -> Result<SpeculativeDecoder::Drawn> {
    TRY(choice.advance(row));
    history_.push_back(choice.last_token());
    ++timings_.decode_tokens;
    ++control().completion_tokens;
    return SpeculativeDecoder::Drawn{choice.last_token(), choice.ended()};
  });
  const std::size_t n_drafted = decoder_->counts().n_drafted - before.n_drafted;
  const std::size_t n_accepted = decoder_->counts().n_accepted - before.n_accepted;
  timings_.drafted_tokens += n_drafted;
  timings_.accepted_tokens += n_accepted;
  control().drafted_tokens += n_drafted;
  control().accepted_tokens += n_accepted;
  return taken;
}

// ---- its end

Job::Numbers GenerationJob::numbers() {
  timings_.total_ms = ms_since(control().submitted);
  const RequestOutcome outcome = reason_ == FinishReason::kLength      ? RequestOutcome::kLength
                                 : reason_ == FinishReason::kToolCalls ? RequestOutcome::kToolCalls
                                                                       : RequestOutcome::kStop;
  return {outcome, usage_, timings_};
}

std::shared_ptr<ReplyDetails> GenerationJob::describe() {
  auto described = std::make_shared<ReplyDetails>();
  ReplyDetails& details = *described;
  details.max_tokens = max_tokens_.value_or(0);
  details.context_full = context_full_;
  details.cache_status = cache_status_.value_or(CacheStatus::kDisabled);
  if (plan_.session) details.cache_status_reason = plan_.session->match().reason;
  details.from_session = from_session_;
  if (from_session_) details.restore_ms = plan_.session->match().load_ms + restore_ms_;
  details.generated_cached_tokens = n_generated_cached_;
  details.strict = strict_;
  details.continuation_tokens = n_continuation_;
  const FlowControl::Waits waits = control().flow->waits();
  details.n_flow_waits = waits.n;
  details.flow_wait_ms = waits.ms;
  details.exact = memory_->runner().rows_independent();
  details.sampling = plan_.sampling;
  const ProcessUsage now = process_usage();
  details.rss_bytes = now.rss_bytes;
  details.peak_rss_bytes = now.peak_rss_bytes;
  details.minor_faults = now.minor_faults - process_.minor_faults;
  details.major_faults = now.major_faults - process_.major_faults;
  return described;
}

void GenerationJob::complete() {
  auto details = describe();
  if (!plan_.session) {
    channel_->push(ReplyDone{usage_, timings_, std::move(details)});
    return;
  }
  // The reply is complete when the session is where it lasts.
  plan_.session->save([channel = channel_, usage = usage_, timings = timings_, details](SessionReport report) {
    details->session = std::move(report);
    channel->push(ReplyDone{usage, timings, details});
  });
}

void GenerationJob::fail(Error error) {
  channel_->fail(std::move(error));
}

}  // namespace hocket
