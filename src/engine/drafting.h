// engine/drafting.h: what proposes tokens for a service's model, as its options ask.
//
// Owns     the sources and, for a draft model, file, weights and runner.
// Threads  the sources belong to the generation thread.
// Errors   those of opening and loading the draft model; open_draft_model(): kInvalid naming "draft-model" when its
//          vocabulary is another one; load_drafting(): kUnsupported naming "mtp" when there is no NextN block.
// Cost     a draft model takes its weights, and a cache for as many tokens as all lanes may have.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/chat_service.h"
#include "lm/runner.h"
#include "runtime/speculative/decoder.h"
#include "runtime/speculative/draft_source.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket {

struct Drafting {
  DraftSettings settings;
  MemoryPlan memory;  // of a draft model
  std::shared_ptr<const GgufFile> file;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<LmRunner> runner;
  std::vector<std::unique_ptr<DraftSource>> sources;  // one a lane; they borrow the runner
};

// What is really drafted with: kNextnIfPresent becomes kNextn or kNone.
DraftOptions resolve_drafts(const DraftOptions& options, const ModelSummary& summary);
// Tokens that one draft may have.
std::size_t n_drafted_at_most(const DraftOptions& options);
// How the model is loaded for these drafts: its NextN block only when it is used.
LoadOptions load_for_drafts(const ServiceOptions& options);

// All of the following take resolved options.

// The file of the draft model or block, whose header fits the model's vocabulary; nullptr when the options name none.
Result<std::shared_ptr<const GgufFile>> open_draft_model(const ServiceOptions& options, const Tokenizer& tokenizer);
// nullptr when the options ask for no drafts. `file` is that of open_draft_model(). `target` is the model's runner; a
// draft model takes turns on its threads.
Result<std::unique_ptr<Drafting>> load_drafting(const ServiceOptions& options, std::shared_ptr<const GgufFile> file,
                                                const Tokenizer& tokenizer, const LmRunner& target);
// The memory that it would take beside a model with these runner options.
Result<MemoryPlan> plan_drafting(const ServiceOptions& options, const GgufFile& model_file,
                                 const RunnerOptions& target);

}  // namespace hocket
