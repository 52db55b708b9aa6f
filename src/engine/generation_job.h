// engine/generation_job.h: one chat or completion request while it runs: prompts, choices, events.
//
// Every prompt is evaluated once; its choices start from copies of that state and go on together, one token of each a
// step, as far as the context has room for all of them; else in groups. A single choice goes on in the prompt's own
// sequence, with drafts where a source of them is free.
//
// Owns     everything the request needs. Borrows the tokenizer and the lanes' memory.
// Threads  see job.h.
// Errors   those of steps and choices, kCancelled, kTimeout.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/reply_format.h"
#include "engine/choice_run.h"
#include "engine/job.h"
#include "engine/prefill_log.h"
#include "engine/process_usage.h"
#include "engine/prompt_builder.h"
#include "engine/reply_channel.h"
#include "engine/session_use.h"
#include "runtime/lanes/prompt_run.h"
#include "runtime/sampling.h"
#include "runtime/speculative/decoder.h"

namespace hocket {

struct GenerationPlan {
  std::vector<PreparedPrompt> prompts;
  std::size_t n_choices = 1;              // of each prompt
  std::optional<std::size_t> max_tokens;  // absent: to the end of the context
  std::size_t n_ctx = 0;
  GenerationOptions generation;                 // without max_tokens
  std::unique_ptr<Sampler> sampler;             // has accepted nothing yet
  SamplingParams sampling;                      // what the sampler was made of, with the real seed
  std::unique_ptr<TokenConstraint> constraint;  // nullptr: free
  bool echo = false;
  DraftSettings drafts;
  ServingParams serving;
  std::unique_ptr<SessionUse> session;  // nullptr: the request names none
  // Chat only.
  std::optional<ReplyFormat> format;
  std::vector<Tool> tools;
  bool opens_thinking = false;
};

class GenerationJob : public Job {
 public:
  GenerationJob(std::shared_ptr<JobControl> control, const Tokenizer& tokenizer, LaneMemory& memory,
                GenerationPlan plan, std::shared_ptr<ReplyChannel> channel);

  LaneDemand demand() const override;
  Result<void> start() override;
  Result<StepWish> wish() override;
  bool done() const override { return at_ == plan_.prompts.size(); }
  void add_to(std::vector<BatchToken>& batch) override;
  Result<void> take(const StepRows& rows, const StepFacts& facts) override;
  Result<void> settle() override;
  void stop() override;

  Numbers numbers() override;
  void complete() override;
  void fail(Error error) override;

 private:
  // How much a prompt's choices may say, and how many of them certainly fit beside it at once.
  std::size_t max_tokens(const PreparedPrompt& prompt) const;
  std::size_t n_together(const PreparedPrompt& prompt) const;
  const PreparedPrompt& prompt() const { return plan_.prompts[at_]; }
  bool forks() const { return plan_.n_choices > 1; }
  std::span<ChoiceRun> group() { return std::span(choices_).subspan(group_first_, group_size_); }
  // Where a choice of the group goes on.
  SeqId sequence_of(std::size_t choice) const { return forks() ? choice_seqs_[choice].id() : prompt_seq_.id(); }

  Result<void> begin_prompt();
  // Everything that can be done without a step: the first tokens, the next group of choices, the next prompt.
  Result<void> advance();
  Result<void> begin_choices();
  Result<void> begin_group();
  void end_group();
  void end_prompt();
  // Keeps prompt and answer for those who may continue from them.
  void keep_continuation();
  void keep_for_session();
  void note_token();
  std::shared_ptr<ReplyDetails> describe();
  Result<void> take_prompt(const StepRows& rows);
  Result<void> take_tokens(const StepRows& rows);
  Result<void> take_with_drafts(const StepRows& rows);
  void push_echo(std::size_t first_choice);
  std::vector<ChoiceRun> make_choices();

  const Tokenizer* tokenizer_;
  LaneMemory* memory_;
  GenerationPlan plan_;
  std::shared_ptr<ReplyChannel> channel_;
  Sequence prompt_seq_;
  std::vector<Sequence> choice_seqs_;  // when there are several choices

  // The present prompt.
  std::size_t at_ = 0;
  std::optional<PromptRun> prompt_run_;
  std::optional<PrefillLog> prefill_log_;
  Clock::time_point phase_start_;
  std::vector<TokenLogprobs> echoed_;
  std::vector<ChoiceRun> choices_;  // empty while the prompt is evaluated
  std::vector<TokenId> history_;    // the prompt and what its first choice said
  // The choices that go on now.
  std::size_t group_first_ = 0, group_size_ = 0;
  DraftLease drafts_;
  std::optional<SpeculativeDecoder> decoder_;

  std::size_t n_prompt_done_ = 0;  // tokens of the prompts before the present one
  Usage usage_;
  Timings timings_;
  std::optional<std::size_t> max_tokens_;  // the smallest of all prompts
  std::optional<CacheStatus> cache_status_;
  std::size_t n_generated_cached_ = 0, n_continuation_ = 0;
  bool strict_ = true;
  bool from_session_ = false;
  double restore_ms_ = 0;
  bool context_full_ = false;
  FinishReason reason_ = FinishReason::kLength;  // of the last choice
  ProcessUsage process_;                         // at the start
};

}  // namespace hocket
