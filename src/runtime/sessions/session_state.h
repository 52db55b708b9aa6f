// runtime/sessions/session_state.h: a saved state of a conversation: its tokens and what the model remembers of them.
//
// As bytes (docs/serving.md, "Sessions") it has a length and a checksum, and names what its numbers depend on: whatever
// is damaged, cut short or of another model is an Error that says so.
//
// Threads  values; pure functions.
// Errors   decode_state(): kInvalid with a reason: "session_damaged", "session_format".
// Cost     encoding and decoding pass over the bytes once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/lanes/reuse_rules.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

enum class StateKind : uint8_t {
  kAligned,       // whole chunks of a prompt
  kExact,         // a whole prompt, with the row of its last token
  kContinuation,  // a prompt and what was generated; where it can be cut anywhere it holds the two others, too
};

// What the numbers of a state depend on; states of another identity are of no use.
struct StateIdentity {
  std::string model;   // a hash of the model file
  std::string layout;  // cache types, chunks and whatever else decides how the numbers come about
  bool operator==(const StateIdentity&) const = default;
};

// What decides whether a prompt can start from a state.
struct StateKey {
  StateKind kind = StateKind::kContinuation;
  bool cuts = false;     // can be cut at any token once it is restored
  bool has_row = false;  // the row after the prompt's last token is there
  StateLineage lineage;
  std::vector<TokenId> tokens;
  StateIdentity identity;

  KeptState kept() const { return {tokens.size(), lineage, has_row}; }
};

struct SessionState {
  StateKey key;
  std::vector<float> row;         // the row after the first lineage.n_prompt tokens, or empty
  std::vector<std::byte> memory;  // SequenceMemory::snapshot()
};

// Everything but the memory's bytes, which follow it. key.has_row is what `row` says.
std::vector<std::byte> encode_state_head(const SessionState& state);
std::size_t encoded_bytes(const SessionState& state);
Result<SessionState> decode_state(std::span<const std::byte> bytes);

// Several states as one run of bytes, to be carried elsewhere; the parts are encoded states.
std::vector<std::byte> pack_states(std::span<const std::vector<std::byte>> parts);
Result<std::vector<SessionState>> unpack_states(std::span<const std::byte> bytes);

// Why a state of `theirs` is of no use to `ours`: an Error with reason "session_model" or "session_layout".
Result<void> check_identity(const StateIdentity& ours, const StateIdentity& theirs);

}  // namespace hocket
