// lm/runner.h: runs steps of a language model over a memory of sequences.
//
//   TRY_ASSIGN(auto runner, LmRunner::create(model, options));
//   TRY(runner->step(batch));                  // a prompt chunk, or one token of several sequences
//   std::span<const float> row = runner->logits(0);
//
// A batch holds tokens of one or more sequences; each sequence's tokens come in order and continue exactly at
// memory().length(seq). Graphs are built once per shape and reused.
//
// Owns     the memory of sequences, the compute buffers and threads. Borrows the model.
// Threads  one user at a time. The token given to step() may be cancelled from any thread; the step then ends early.
// Errors   step(): kInvalid for a malformed batch, kBusy when the memory is full, kCancelled; the sequences are then as
//          before the call. kOutOfMemory at create().
// Cost     step() is one pass over the weights, or more for long batches (chunks of n_batch tokens).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "compute/device.h"
#include "memory/sequence_memory.h"

namespace hocket {

class LanguageModel;
class ThreadPool;

enum class FlashAttention { kAuto, kOn, kOff };

struct RunnerOptions {
  std::size_t n_ctx = 4096;  // most tokens of a sequence
  std::size_t n_cells = 0;   // tokens that fit, all sequences together; 0: n_ctx
  std::size_t n_seqs = 1;
  std::size_t n_batch = 512;  // most tokens of one step
  int n_threads = 0;          // 0: the physical cores that this process may use
  std::shared_ptr<ThreadPool>
      threads;  // of another runner that this one takes turns with; nullptr: n_threads of its own
  CacheType cache_k = CacheType::kF16;
  CacheType cache_v = CacheType::kF16;
  FlashAttention flash_attention = FlashAttention::kAuto;  // auto: off with F32 caches (exact), else on
  // For models with recurrent layers; others can be cut anywhere and need neither.
  std::size_t n_rollback = 1;     // tokens of a step that truncate() can take back one by one
  std::size_t n_checkpoints = 0;  // states that memory().checkpoint() keeps, all sequences together
};

struct BatchToken {
  int32_t id;
  SeqId seq;
  bool output = false;  // this token's logits (or hidden state) are wanted
};

enum class StepOutput {
  kLogits,
  kHidden,           // the state after the final norm
  kLogitsAndHidden,  // logits of the wanted tokens, and the state after the final norm of every token: hidden()
  kActivations,      // of a model part without the head: what the next part starts from, for every token
};

class LmRunner {
 public:
  static Result<std::unique_ptr<LmRunner>> create(const LanguageModel& model, const RunnerOptions& options);
  // Runs the model's NextN block (multi-token prediction): step_from() the final hidden states of the tokens before.
  // kUnsupported when the model has none.
  static Result<std::unique_ptr<LmRunner>> create_nextn(const LanguageModel& model, const RunnerOptions& options);
  virtual ~LmRunner() = default;

  // At most n_batch tokens.
  virtual Result<void> step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) = 0;
  Result<void> step(std::span<const BatchToken> batch, StepOutput output = StepOutput::kLogits) {
    return step(batch, output, CancelToken());
  }
  // For runners that do not start from tokens alone (a later part of a model, a NextN block): activations
  // [width, batch.size()] in batch order.
  virtual Result<void> step_from(std::span<const float> activations, std::span<const BatchToken> batch,
                                 StepOutput output, const CancelToken& cancel);
  // Row i of the last step's outputs, in batch order: [n_vocab] logits or [n_embd] hidden. Valid until the next step.
  virtual std::span<const float> output(std::size_t i) const = 0;
  virtual std::size_t n_outputs() const = 0;
  // The caller will not look at the logits of tokens below this one: they may be −∞ from now on, and cost nothing then.
  virtual void skip_logits_below(int32_t) {}
  // After kLogitsAndHidden: the state after the final norm of token i of the batch, [n_embd].
  virtual std::span<const float> hidden(std::size_t i) const;

  virtual SequenceMemory& memory() = 0;
  virtual const LanguageModel& model() const = 0;
  virtual const RunnerOptions& options() const = 0;
  // Whether a row's bits are the same whatever else is in its step and wherever its tokens lie in the memory.
  virtual bool rows_independent() const { return false; }
};

// Device bytes that create() would take, before taking them.
struct MemoryPlan {
  std::size_t weight_bytes = 0;
  std::size_t cache_bytes = 0;
  std::size_t compute_bytes = 0;  // an upper estimate until the runner exists
  std::size_t total_bytes() const { return weight_bytes + cache_bytes + compute_bytes; }
};

}  // namespace hocket
