// engine/session_use.h: what one request has of its session: the state that it may start from, and those that it
// leaves.
//
// States are copied out of the model's memory while the request runs and written when its reply is complete, in which
// the client reads whether they are where they last.
//
// Owns     the copies. Borrows the store, which outlives every request.
// Threads  created by the client's thread, then the generation thread's; the end of save() is the store's thread's.
// Errors   none: what cannot be kept is told in the report.
// Cost     keep_…() copies the state of a sequence; writing is the store's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/requests.h"
#include "runtime/lanes/prompt_run.h"
#include "runtime/sessions/session_store.h"

namespace hocket {

class SessionUse {
 public:
  // Looks for what the session has for this prompt.
  static std::unique_ptr<SessionUse> open(SessionStore& store, SessionName name, std::span<const TokenId> prompt,
                                          bool any_lineage);
  // The session is given up: nothing is taken, nothing is left.
  static std::unique_ptr<SessionUse> drop(SessionStore& store, SessionName name);

  const SessionMatch& match() const { return match_; }
  void note_restored() { store_->count_restored(); }

  // Once the prompt is in `seq`: the states of models whose memory cannot return to it later. n_most: tokens that the
  // sequence will have at most.
  void keep_prompt(LaneMemory& memory, SeqId seq, const PromptRun& run, std::span<const TokenId> prompt,
                   std::size_t n_most);
  // Once the answer is complete: `tokens` are what `seq` holds, the prompt's first.
  void keep_answer(LaneMemory& memory, SeqId seq, const PromptRun& run, std::size_t n_prompt,
                   std::span<const TokenId> tokens);

  // Writes what was kept; `done` is told from another thread.
  void save(std::function<void(SessionReport)> done);

 private:
  SessionUse(SessionStore& store, SessionName name) : store_(&store), name_(std::move(name)) {}
  void keep(LaneMemory& memory, SeqId seq, StateKey key, std::span<const float> row);
  void keep_aligned(LaneMemory& memory, const PromptRun& run, std::span<const TokenId> prompt);

  SessionStore* store_;
  SessionName name_;
  SessionMatch match_;
  std::vector<SessionState> states_;
  std::string reason_;  // why nothing is saved
};

}  // namespace hocket
