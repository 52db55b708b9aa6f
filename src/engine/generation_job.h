// engine/generation_job.h: one chat or completion request while it runs: prompts, choices, events.
//
// Every prompt is evaluated once; its choices start from copies of that state and go on together, one token of each a
// step, as far as the context has room for all of them; else in groups. A single choice goes on in the prompt's own
// sequence, with drafts where the service has a source of them.
//
// Owns     everything the request needs. Borrows the tokenizer.
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
#include "engine/process_usage.h"
#include "engine/prompt_builder.h"
#include "engine/prompt_lane.h"
#include "engine/reply_channel.h"
#include "runtime/sampling.h"

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
  std::string tenant;
  // Chat only.
  std::optional<ReplyFormat> format;
  std::vector<Tool> tools;
  bool opens_thinking = false;
};

class GenerationJob : public Job {
 public:
  GenerationJob(std::shared_ptr<JobControl> control, const Tokenizer& tokenizer, GenerationPlan plan,
                std::shared_ptr<ReplyChannel> channel);

  Result<void> run(PromptLane& lane) override;
  Numbers numbers() override;
  void complete() override;
  void fail(Error error) override;

 private:
  Result<void> run_prompt(PromptLane& lane, std::size_t prompt_index);
  Result<PromptLane::Filled> fill(PromptLane& lane, const PreparedPrompt& prompt, std::vector<TokenLogprobs>& echoed);
  Result<void> decode(PromptLane& lane, const PreparedPrompt& prompt, std::size_t max_tokens,
                      std::span<const float> first_row, std::span<ChoiceRun> choices);
  // Where a choice of the group goes on.
  SeqId sequence_of(std::size_t choice) const;
  // After the first token.
  Result<void> decode_together(PromptLane& lane, std::span<ChoiceRun> choices);
  Result<void> decode_with_drafts(PromptLane& lane, const PreparedPrompt& prompt, std::size_t max_tokens,
                                  ChoiceRun& choice);
  void push_echo(const PreparedPrompt& prompt, std::size_t first_choice, const std::vector<TokenLogprobs>& echoed);
  std::vector<ChoiceRun> make_choices(const PreparedPrompt& prompt, std::size_t first_choice, std::size_t max_tokens);

  const Tokenizer* tokenizer_;
  GenerationPlan plan_;
  std::shared_ptr<ReplyChannel> channel_;
  std::size_t n_prompt_done_ = 0;  // tokens of the prompts before the present one
  Usage usage_;
  Timings timings_;
  std::optional<std::size_t> max_tokens_;  // the smallest of all prompts
  bool context_full_ = false;
  FinishReason reason_ = FinishReason::kLength;  // of the last choice
  ProcessUsage process_;                         // at the start
};

}  // namespace hocket
