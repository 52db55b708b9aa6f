// Recurrent states against a plain model (the list of tokens of each sequence) under random operations. The "state" of
// a history is a number made from it, written where a step would write and read where a step would read.
#include "memory/recurrent_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "memory/model_memory.h"

namespace hocket::test {
namespace {

using History = std::vector<int>;

float state_of(const History& history) {
  uint32_t hash = 2166136261u;
  for (const int token : history) hash = (hash ^ static_cast<uint32_t>(token + 1)) * 16777619u;
  return history.empty() ? 0.0f : static_cast<float>(hash >> 8);
}

float row(const RecurrentState& states, uint32_t index) {
  float value = -1;
  ggml_backend_tensor_get(states.state(0), &value, index * states.state(0)->nb[1], sizeof value);
  return value;
}

void set_row(const RecurrentState& states, uint32_t index, float value) {
  const std::vector<float> all(static_cast<std::size_t>(states.state(0)->ne[0]), value);
  ggml_backend_tensor_set(states.state(0), all.data(), index * states.state(0)->nb[1], states.state(0)->nb[1]);
  ggml_backend_tensor_set(states.conv(0), all.data(), index * states.conv(0)->nb[1], states.conv(0)->nb[1]);
}

void random_operations(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const RecurrentOptions options{3, 1 + seed % 4, seed % 3};
  const auto made = RecurrentState::create({{3, 5}}, options, *find_device(""));
  ASSERT_TRUE(made.ok());
  RecurrentState& states = **made;
  std::vector<History> histories(options.n_seqs);
  std::vector<std::vector<std::size_t>> steps_back(options.n_seqs);  // lengths that the last step can be cut at
  int next_token = 0;
  for (int round = 0; round < 300; ++round) {
    const auto s = random() % options.n_seqs;
    const auto seq = static_cast<SeqId>(s);
    switch (random() % 9) {
      case 0: {
        const std::size_t n = histories[s].empty() ? 0 : random() % (histories[s].size() + 1);
        for (const std::size_t must : steps_back[s]) ASSERT_TRUE(states.can_truncate(seq, must)) << must;
        if (!states.can_truncate(seq, n)) {
          EXPECT_NE(n, 0u);
          EXPECT_NE(n, histories[s].size());
          break;
        }
        states.truncate(seq, n);
        histories[s].resize(n);
        std::erase_if(steps_back[s], [&](std::size_t length) { return length > n; });
        break;
      }
      case 1: {
        const auto t = (s + 1) % options.n_seqs;
        states.fork(seq, static_cast<SeqId>(t));
        histories[t] = histories[s];
        steps_back[t].clear();
        break;
      }
      case 2: {
        states.checkpoint(seq);
        if (options.n_checkpoints > 0) {
          EXPECT_TRUE(states.can_truncate(seq, histories[s].size()));
        }
        break;
      }
      case 3: {
        std::vector<std::byte> bytes(states.bytes_per_sequence());
        states.read(seq, bytes);
        const auto t = (s + 1) % options.n_seqs;
        states.write(static_cast<SeqId>(t), histories[s].size(), bytes);
        histories[t] = histories[s];
        steps_back[t].clear();
        break;
      }
      default: {
        std::vector<Lane> lanes;
        std::vector<History> after;
        for (std::size_t q = 0; q < options.n_seqs; ++q)
          if (q == s || random() % 2 == 0) {
            lanes.push_back({static_cast<SeqId>(q), histories[q].size(), 1 + random() % 5, 0, {}});
            after.push_back(histories[q]);
          }
        states.place(lanes);
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          ASSERT_EQ(row(states, lanes[i].row_in), state_of(after[i])) << "sequence " << lanes[i].seq;
          ASSERT_EQ(lanes[i].rows_out.size(), states.n_written(lanes[i].n_tokens));
          for (std::size_t t = 0; t < lanes[i].n_tokens; ++t) {
            after[i].push_back(next_token++);
            const std::size_t back = lanes[i].n_tokens - 1 - t;
            if (back < lanes[i].rows_out.size()) set_row(states, lanes[i].rows_out[back], state_of(after[i]));
          }
        }
        if (random() % 5 == 0) {  // the step failed: nothing has happened, but the last one cannot be taken back
          for (const Lane& lane : lanes) steps_back[static_cast<std::size_t>(lane.seq)].clear();
          break;
        }
        states.commit(lanes);
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          const auto q = static_cast<std::size_t>(lanes[i].seq);
          histories[q] = after[i];
          steps_back[q].clear();
          if (lanes[i].n_tokens <= options.n_rollback)
            for (std::size_t n = lanes[i].first_position; n <= after[i].size(); ++n) steps_back[q].push_back(n);
        }
      }
    }
    for (std::size_t q = 0; q < options.n_seqs; ++q) {
      std::vector<std::byte> bytes(states.bytes_per_sequence());
      states.read(static_cast<SeqId>(q), bytes);
      float first = -1;
      std::memcpy(&first, bytes.data(), sizeof first);
      ASSERT_EQ(first, state_of(histories[q])) << "round " << round << ", sequence " << q;
    }
  }
}

TEST(RecurrentState, AgreesWithThePlainModel) {
  for (unsigned seed = 1; seed <= 30; ++seed) random_operations(seed);
}

TEST(RecurrentState, TheOldestCheckpointGoesFirst) {
  const auto states = std::move(*RecurrentState::create({{3, 5}}, {1, 1, 2}, *find_device("")));
  for (std::size_t n = 0; n < 5; ++n) {
    std::vector<Lane> lanes{{0, n * 4, 4, 0, {}}};
    states->place(lanes);
    states->commit(lanes);
    states->checkpoint(0);
  }
  EXPECT_FALSE(states->can_truncate(0, 4));
  EXPECT_FALSE(states->can_truncate(0, 12));
  EXPECT_TRUE(states->can_truncate(0, 16));
  EXPECT_TRUE(states->can_truncate(0, 20));
  EXPECT_TRUE(states->can_truncate(0, 0));
}

TEST(RecurrentState, TakesTheBytesItSaid) {
  const std::vector<RecurrentLayerSpec> layers{{3, 5}, {}, {4, 0}};
  const RecurrentOptions options{2, 3, 4};
  EXPECT_EQ(RecurrentState::bytes(layers, options), (3 + 5 + 4) * sizeof(float) * (1 + 2 * 4 + 4));
  const auto states = std::move(*RecurrentState::create(layers, options, *find_device("")));
  EXPECT_EQ(states->bytes_per_sequence(), 12 * sizeof(float));
  EXPECT_EQ(states->state(2), nullptr);
}

TEST(ModelMemory, SnapshotsOfOtherModelsAreRefused) {
  const auto memory = [](RecurrentLayerSpec recurrent) {
    const ModelMemoryOptions options{{256, 1, 64, CacheType::kF32, CacheType::kF32}, {1, 1, 0}};
    return std::move(*ModelMemory::create({{.kv = {1, 8, 8}}, {.recurrent = recurrent}}, options, *find_device("")));
  };
  auto source = memory({3, 5}), same = memory({3, 5}), other = memory({5, 3});
  const std::vector<SeqId> seqs(4, 0);
  source->commit(*source->place(seqs));
  const auto snapshot = source->snapshot(0);
  ASSERT_TRUE(snapshot.ok());
  EXPECT_FALSE(other->restore(0, *snapshot).ok());
  EXPECT_EQ(other->length(0), 0u);
  ASSERT_TRUE(same->restore(0, *snapshot).ok());
  EXPECT_EQ(same->length(0), 4u);
  EXPECT_FALSE(same->traits().cuts_anywhere);
  EXPECT_TRUE(same->can_truncate(0, 4));
  EXPECT_FALSE(same->can_truncate(0, 3));
  EXPECT_FALSE(same->truncate(0, 3).ok());
  EXPECT_EQ(same->length(0), 4u);
}

}  // namespace
}  // namespace hocket::test
