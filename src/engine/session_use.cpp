#include "engine/session_use.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace hocket {

std::unique_ptr<SessionUse> SessionUse::open(SessionStore& store, SessionName name, std::span<const TokenId> prompt,
                                             bool any_lineage) {
  std::unique_ptr<SessionUse> use(new SessionUse(store, std::move(name)));
  use->match_ = store.find(use->name_, prompt, any_lineage);
  return use;
}

std::unique_ptr<SessionUse> SessionUse::drop(SessionStore& store, SessionName name) {
  std::unique_ptr<SessionUse> use(new SessionUse(store, std::move(name)));
  use->reason_ = "cache_prompt";
  const auto dropped = store.drop(use->name_);
  if (!dropped && dropped.error().code != ErrorCode::kNotFound) use->reason_ = "not_dropped";
  return use;
}

void SessionUse::keep(LaneMemory& memory, SeqId seq, StateKey key, std::span<const float> row) {
  auto snapshot = memory.runner().memory().snapshot(seq);
  if (!snapshot) {
    log_warn("a session cannot be kept: {}", snapshot.error().message);
    reason_ = "snapshot";
    return;
  }
  SessionState& state = states_.emplace_back();
  if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
    state.row.assign(row.begin(), row.end());
  key.identity = store_->options().identity;
  key.has_row = !state.row.empty();
  key.cuts = memory.runner().memory().traits().snapshot_cuts(key.tokens.size());
  state.key = std::move(key);
  state.memory = std::move(*snapshot);
}

void SessionUse::keep_prompt(LaneMemory& memory, SeqId seq, const PromptRun& run, std::span<const TokenId> prompt,
                             std::size_t n_most) {
  if (!reason_.empty()) return;
  const bool later = n_most > prompt.size() && memory.runner().memory().traits().snapshot_cuts(n_most);
  if (later) return;
  keep_aligned(memory, run, prompt);
  StateKey key;
  key.kind = StateKind::kExact;
  key.lineage = {run.n_strict(), prompt.size()};
  key.tokens.assign(prompt.begin(), prompt.end());
  keep(memory, seq, std::move(key), run.last_row());
}

void SessionUse::keep_aligned(LaneMemory& memory, const PromptRun& run, std::span<const TokenId> prompt) {
  if (prompt.size() < 2 || memory.runner().memory().traits().snapshot_cuts(prompt.size())) return;
  auto aside = memory.take_sequence();
  if (!aside) return;
  const auto copied = memory.prefixes().copy(aside->id(), prompt.first(prompt.size() - 1), run.tenant(), false);
  if (!copied || copied->n_tokens == 0) return;
  StateKey key;
  key.kind = StateKind::kAligned;
  key.lineage = {copied->n_tokens, copied->n_tokens};
  key.tokens.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(copied->n_tokens));
  keep(memory, aside->id(), std::move(key), {});
}

void SessionUse::keep_answer(LaneMemory& memory, SeqId seq, const PromptRun& run, std::size_t n_prompt,
                             std::span<const TokenId> tokens) {
  if (!reason_.empty()) return;
  const bool cuts = memory.runner().memory().traits().snapshot_cuts(tokens.size());
  // The exact state is this one.
  if (!cuts && tokens.size() == n_prompt && !states_.empty()) return;
  StateKey key;
  key.lineage = {run.n_strict(), n_prompt};
  key.tokens.assign(tokens.begin(), tokens.end());
  const bool with_row = cuts || tokens.size() == n_prompt;
  keep(memory, seq, std::move(key), with_row ? run.last_row() : std::span<const float>());
}

void SessionUse::save(std::function<void(SessionReport)> done) {
  SessionReport report;
  report.id = name_.id;
  report.stored = "skipped";
  if (!reason_.empty() || states_.empty()) {
    report.reason = reason_.empty() ? "nothing_to_save" : reason_;
    return done(std::move(report));
  }
  store_->save(name_, std::move(states_), [report, done = std::move(done)](const SaveOutcome& outcome) mutable {
    if (outcome.stored != SaveOutcome::Stored::kSkipped)
      report.stored = outcome.stored == SaveOutcome::Stored::kDisk ? "disk" : "ram";
    report.reason = outcome.reason;
    report.n_bytes = outcome.n_bytes;
    report.save_ms = outcome.ms;
    done(std::move(report));
  });
}

}  // namespace hocket
