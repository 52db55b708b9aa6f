// support/fake_language_model.h: a language model without weights, for tests of what is built on the runner.
//
// The next token is what `next` says of the tokens so far; the rest of a row of logits is noise that depends on every
// token and on how it was evaluated (its step's length and its place in it). Two runs give equal logits only when they
// went through the same steps, which makes wrong reuse of state visible. Script::exact makes rows depend on the tokens
// alone.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lm/language_model.h"
#include "lm/runner.h"
#include "tokenizer/tokenizer.h"

namespace hocket::fake {

struct Cell {
  int32_t token;
  uint64_t lineage;  // how it was evaluated
  uint64_t id;       // shared by forks
};

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 32);
}

class Memory : public SequenceMemory {
 public:
  Memory(std::size_t n_seqs, std::size_t n_cells) : seqs_(n_seqs), n_cells_(n_cells) {}

  MemoryTraits traits() const override {
    MemoryTraits traits;
    traits.cuts_anywhere = cuts_anywhere;
    traits.n_window = window;
    return traits;
  }
  std::size_t n_seqs() const override { return seqs_.size(); }
  std::size_t n_cells() const override { return n_cells_; }
  std::size_t n_free_cells() const override {
    std::set<uint64_t> used;
    for (const auto& seq : seqs_) {
      for (const Cell& cell : seq) used.insert(cell.id);
    }
    return n_cells_ - used.size();
  }
  std::size_t length(SeqId seq) const override { return at(seq).size(); }
  bool can_truncate(SeqId seq, std::size_t n) const override {
    if (!cuts_anywhere) return n == 0 || n == at(seq).size();
    return n <= at(seq).size() && n >= oldest_cut;
  }
  Result<void> truncate(SeqId seq, std::size_t n) override {
    if (!can_truncate(seq, n)) return Error(ErrorCode::kInvalid, "cannot cut there");
    at(seq).resize(n);
    return {};
  }
  void clear(SeqId seq) override { at(seq).clear(); }
  void checkpoint(SeqId) override {}
  Result<void> fork(SeqId source, SeqId target) override {
    at(target) = at(source);
    return {};
  }
  Result<std::vector<std::byte>> snapshot(SeqId seq) const override {
    // A byte more, so that the snapshot of an empty sequence is not empty.
    std::vector<std::byte> bytes(at(seq).size() * sizeof(Cell) + 1);
    std::memcpy(bytes.data(), at(seq).data(), bytes.size() - 1);
    return bytes;
  }
  Result<void> restore(SeqId seq, std::span<const std::byte> snapshot) override {
    ++n_restored;
    at(seq).resize(snapshot.size() / sizeof(Cell));
    std::memcpy(at(seq).data(), snapshot.data(), snapshot.size() - 1);
    return {};
  }

  std::vector<Cell>& at(SeqId seq) { return seqs_.at(static_cast<std::size_t>(seq)); }
  const std::vector<Cell>& at(SeqId seq) const { return seqs_.at(static_cast<std::size_t>(seq)); }

  std::size_t oldest_cut = 0;  // as if a window had dropped what is older
  std::size_t window = 0;      // what snapshots of longer sequences can be cut no more
  bool cuts_anywhere = true;   // false: as if there were recurrent layers
  std::size_t n_restored = 0;

 private:
  std::vector<std::vector<Cell>> seqs_;
  std::size_t n_cells_;
};

struct Script {
  // The token that follows these.
  std::function<TokenId(std::span<const TokenId>)> next;
  float peak = 20.0f;  // how much its logit exceeds the noise in [0, 1)
  bool exact = false;  // a row depends on the tokens before it, not on their steps
  // Runs before each step (blocks, throws, …).
  std::function<void(std::span<const BatchToken>)> on_step;
};

class Model : public LanguageModel {
 public:
  explicit Model(std::size_t n_vocab) {
    summary_.arch = "fake";
    summary_.name = "Fake";
    summary_.n_vocab = n_vocab;
    summary_.n_embd = 8;
    summary_.n_ctx_train = 4096;
  }
  const ModelSummary& summary() const override { return summary_; }
  std::size_t n_vocab() const override { return summary_.n_vocab; }
  MemoryPlan plan(const RunnerOptions&) const override { return {}; }

 private:
  ModelSummary summary_;
};

class Runner : public LmRunner {
 public:
  Runner(const Model& model, const RunnerOptions& options, Script s)
      : script(std::move(s)),
        model_(model),
        options_(options),
        memory_(options.n_seqs, options.n_cells == 0 ? options.n_ctx : options.n_cells) {}

  using LmRunner::step;
  Result<void> step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) override {
    if (script.on_step) script.on_step(batch);
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    if (batch.empty() || batch.size() > options_.n_batch) return Error(ErrorCode::kInvalid, "bad batch");
    if (batch.size() > memory_.n_free_cells()) return Error(ErrorCode::kBusy, "memory is full");
    {
      const std::lock_guard lock(mutex_);
      steps_.push_back(batch.size());
    }
    rows_.clear();
    for (const BatchToken& token : batch) {
      const auto n_of_seq = static_cast<std::size_t>(
          std::count_if(batch.begin(), batch.end(), [&](const BatchToken& other) { return other.seq == token.seq; }));
      const auto place = static_cast<std::size_t>(
          std::count_if(batch.data(), &token, [&](const BatchToken& other) { return other.seq == token.seq; }));
      std::vector<Cell>& cells = memory_.at(token.seq);
      cells.push_back({token.id, mix(n_of_seq, place), next_id_++});
      if (token.output) rows_.push_back(output == StepOutput::kLogits ? logits(cells) : hidden_of(cells));
    }
    return {};
  }
  std::span<const float> output(std::size_t i) const override { return rows_.at(i); }
  std::size_t n_outputs() const override { return rows_.size(); }
  SequenceMemory& memory() override { return memory_; }
  const LanguageModel& model() const override { return model_; }
  const RunnerOptions& options() const override { return options_; }

  bool rows_independent() const override { return script.exact; }

  Memory& fake_memory() { return memory_; }
  // Lengths of all steps so far.
  std::vector<std::size_t> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

  Script script;

 private:
  std::vector<float> logits(const std::vector<Cell>& cells) const {
    std::vector<float> row(model_.n_vocab());
    uint64_t hash = 0;
    std::vector<TokenId> tokens;
    for (const Cell& cell : cells) {
      hash = mix(mix(hash, static_cast<uint64_t>(cell.token)), script.exact ? 0 : cell.lineage);
      tokens.push_back(cell.token);
    }
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(mix(hash, i) >> 40) / (1 << 24);
    if (script.next) row.at(static_cast<std::size_t>(script.next(tokens))) += script.peak;
    return row;
  }
  std::vector<float> hidden_of(const std::vector<Cell>& cells) const {
    std::vector<float> row(model_.summary().n_embd);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(mix(static_cast<uint64_t>(cells.back().token), i) >> 40) / (1 << 24) - 0.5f;
    }
    return row;
  }

  const Model& model_;
  RunnerOptions options_;
  Memory memory_;
  std::vector<std::vector<float>> rows_;
  uint64_t next_id_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::size_t> steps_;
};

}  // namespace hocket::fake
