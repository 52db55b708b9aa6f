// States without a model, and a store that waits for its saves.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "runtime/sessions/session_store.h"
#include "support/temp_folder.h"

namespace hocket::test {

inline const StateIdentity kIdentity{"model-1", "layout-1"};

// Its memory's bytes tell the tokens apart. It can be cut anywhere, and all of it is a strict prompt.
inline SessionState state_of(std::vector<TokenId> tokens, std::size_t n_memory = 100) {
  SessionState state;
  state.key.cuts = true;
  state.key.identity = kIdentity;
  state.key.lineage = {tokens.size(), tokens.size()};
  for (std::size_t i = 0; i < n_memory; ++i)
    state.memory.push_back(static_cast<std::byte>(tokens[i % tokens.size()] + static_cast<TokenId>(i)));
  state.key.tokens = std::move(tokens);
  return state;
}

inline std::vector<TokenId> run_of(TokenId first, std::size_t n) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(first + static_cast<TokenId>(i));
  return tokens;
}

inline SaveOutcome save(SessionStore& store, const SessionName& name, std::vector<SessionState> states) {
  std::promise<SaveOutcome> promise;
  store.save(name, std::move(states), [&](const SaveOutcome& outcome) { promise.set_value(outcome); });
  return promise.get_future().get();
}
inline SaveOutcome save(SessionStore& store, const SessionName& name, SessionState state) {
  std::vector<SessionState> states;
  states.push_back(std::move(state));
  return save(store, name, std::move(states));
}

// How much of these tokens a prompt of them and one more can start from.
inline std::size_t found(SessionStore& store, const SessionName& name, std::vector<TokenId> tokens) {
  const SessionState expected = state_of(tokens);
  tokens.push_back(99999);
  const SessionMatch match = store.find(name, tokens, true);
  if (match.state && match.n_tokens == expected.key.tokens.size() && match.state->key.tokens == expected.key.tokens) {
    EXPECT_EQ(match.state->memory, state_of(expected.key.tokens, match.state->memory.size()).memory);
  }
  return match.n_tokens;
}

inline std::unique_ptr<SessionStore> open_store(SessionStoreOptions options) {
  options.identity = options.identity == StateIdentity() ? kIdentity : options.identity;
  options.rules.n_chunk = 8;
  options.rules.n_least = 4;
  auto store = SessionStore::open(std::move(options));
  EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().message);
  return store.ok() ? std::move(*store) : nullptr;
}

}  // namespace hocket::test
