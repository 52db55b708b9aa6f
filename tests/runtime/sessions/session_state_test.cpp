#include "runtime/sessions/session_state.h"

#include <gtest/gtest.h>

#include <limits>

#include "session_fixture.h"

namespace hocket::test {
namespace {

std::vector<std::byte> encoded(const SessionState& state) {
  std::vector<std::byte> bytes = encode_state_head(state);
  bytes.insert(bytes.end(), state.memory.begin(), state.memory.end());
  return bytes;
}

SessionState example() {
  SessionState state = state_of({1, 2, 3, 4, 5, 6}, 40);
  state.key.lineage = {4, 5};
  state.row = {0.5f, -1.25f, 3.0f};
  return state;
}

TEST(SessionState, ComesBackAsItWas) {
  const SessionState state = example();
  const auto bytes = encoded(state);
  EXPECT_EQ(bytes.size(), encoded_bytes(state));
  const auto back = decode_state(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->key.tokens, state.key.tokens);
  EXPECT_EQ(back->key.identity, state.key.identity);
  EXPECT_EQ(back->key.kind, StateKind::kContinuation);
  EXPECT_TRUE(back->key.cuts);
  EXPECT_TRUE(back->key.has_row);
  EXPECT_EQ(back->key.lineage.n_strict, 4u);
  EXPECT_EQ(back->key.lineage.n_prompt, 5u);
  EXPECT_EQ(back->row, state.row);
  EXPECT_EQ(back->memory, state.memory);
}

TEST(SessionState, EveryByteCounts) {
  const auto bytes = encoded(example());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode_state(std::span(bytes).first(n)).ok()) << n << " bytes";
    for (const int bit : {0, 3, 7}) {
      auto flipped = bytes;
      flipped[n] ^= static_cast<std::byte>(1 << bit);
      const auto back = decode_state(flipped);
      ASSERT_FALSE(back.ok()) << "bit " << bit << " of byte " << n;
      EXPECT_EQ(back.error().code, ErrorCode::kInvalid);
      EXPECT_FALSE(back.error().reason.empty());
    }
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_state(longer).ok());
}

TEST(SessionState, WhatCannotBeIsRefusedDespiteItsChecksum) {
  SessionState state = example();
  state.key.lineage = {6, 5};
  EXPECT_FALSE(decode_state(encoded(state)).ok());
  state.key.lineage = {2, 7};
  EXPECT_FALSE(decode_state(encoded(state)).ok());
  state = example();
  state.row[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(decode_state(encoded(state)).ok());
  state = example();
  state.key.kind = static_cast<StateKind>(9);
  EXPECT_EQ(decode_state(encoded(state)).error().reason, "session_format");
  state = example();
  state.key.tokens.clear();
  state.key.lineage = {};
  EXPECT_FALSE(decode_state(encoded(state)).ok());
}

TEST(SessionState, AnotherFormatSaysSo) {
  auto bytes = encoded(example());
  bytes[7] = static_cast<std::byte>('2');
  const auto back = decode_state(bytes);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().reason, "session_format");
  EXPECT_NE(back.error().message.find("version"), std::string::npos);
}

TEST(SessionState, APackIsItsStates) {
  const std::vector<std::vector<std::byte>> parts = {encoded(example()), encoded(state_of({7, 8}, 3))};
  const auto bytes = pack_states(parts);
  const auto states = unpack_states(bytes);
  ASSERT_TRUE(states.ok()) << states.error().message;
  ASSERT_EQ(states->size(), 2u);
  EXPECT_EQ((*states)[0].key.tokens, example().key.tokens);
  EXPECT_EQ((*states)[1].memory.size(), 3u);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(unpack_states(std::span(bytes).first(n)).ok()) << n << " bytes";
    auto flipped = bytes;
    flipped[n] ^= std::byte{16};
    EXPECT_FALSE(unpack_states(flipped).ok()) << "byte " << n;
  }
  EXPECT_FALSE(unpack_states(pack_states({})).ok());
  EXPECT_FALSE(unpack_states(parts[0]).ok());
}

TEST(SessionState, IdentityNamesWhatDiffers) {
  const StateIdentity ours{"m1", "l1"};
  EXPECT_TRUE(check_identity(ours, {"m1", "l1"}).ok());
  EXPECT_EQ(check_identity(ours, {"m2", "l1"}).error().reason, "session_model");
  EXPECT_EQ(check_identity(ours, {"m1", "l2"}).error().reason, "session_layout");
}

}  // namespace
}  // namespace hocket::test
