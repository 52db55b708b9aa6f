// The cell pool against a plain model (a set of (sequence, position) pairs), under random operations.
#include "memory/cell_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace hocket::test {
namespace {

// What a token of `seq` at its next position sees, by the pool.
std::multiset<int32_t> seen(const CellPool& pool, SeqId seq, int32_t position) {
  std::multiset<int32_t> positions;
  for (uint32_t cell = 0; cell < pool.n_cells(); ++cell)
    if (pool.visible(cell, seq, position)) positions.insert(pool.position(cell));
  return positions;
}

void random_operations(std::size_t window, unsigned seed) {
  SCOPED_TRACE(testing::Message() << "window " << window << " seed " << seed);
  std::mt19937 random(seed);
  constexpr std::size_t kSeqs = 3;
  CellPool pool(64, window);
  std::vector<std::size_t> lengths(kSeqs, 0);
  for (int round = 0; round < 400; ++round) {
    const auto seq = static_cast<SeqId>(random() % kSeqs);
    const auto s = static_cast<std::size_t>(seq);
    switch (random() % 8) {
      case 0: {
        const std::size_t n = lengths[s] == 0 ? 0 : random() % (lengths[s] + 1);
        if (pool.holds_before(seq, n)) {
          pool.truncate(seq, n);
          lengths[s] = n;
        } else {
          EXPECT_GT(window, 0u) << "a full pool can be cut anywhere";
        }
        break;
      }
      case 1: {
        const auto target = static_cast<SeqId>((seq + 1) % static_cast<SeqId>(kSeqs));
        pool.truncate(target, 0);
        pool.fork(seq, target);
        lengths[static_cast<std::size_t>(target)] = lengths[s];
        break;
      }
      default: {
        const std::size_t n = 1 + random() % 6;
        const auto cells = pool.find(n, lengths);
        if (!cells.ok()) {
          EXPECT_EQ(cells.error().code, ErrorCode::kBusy);
          EXPECT_LT(pool.n_free(lengths), n);
          break;
        }
        for (std::size_t i = 0; i < n; ++i) pool.assign((*cells)[i], seq, static_cast<int32_t>(lengths[s]++));
      }
    }
    for (std::size_t q = 0; q < kSeqs; ++q) {
      // The next token must see exactly the last window − 1 positions, each once.
      std::multiset<int32_t> expected;
      const std::size_t first = window == 0 || lengths[q] < window ? 0 : lengths[q] - window + 1;
      for (std::size_t p = first; p < lengths[q]; ++p) expected.insert(static_cast<int32_t>(p));
      ASSERT_EQ(seen(pool, static_cast<SeqId>(q), static_cast<int32_t>(lengths[q])), expected) << "sequence " << q;
      ASSERT_TRUE(pool.holds_before(static_cast<SeqId>(q), lengths[q]));
      ASSERT_EQ(pool.live_cells(static_cast<SeqId>(q), lengths[q]).size(), expected.size());
    }
  }
}

TEST(CellPool, FullAgreesWithThePlainModel) {
  for (unsigned seed = 1; seed <= 20; ++seed) random_operations(0, seed);
}

TEST(CellPool, WindowedAgreesWithThePlainModel) {
  for (unsigned seed = 1; seed <= 20; ++seed) random_operations(1 + seed % 9, seed);
}

TEST(CellPool, WindowedPoolNeverRunsOut) {
  CellPool pool(16, 8);
  std::vector<std::size_t> lengths{0};
  for (int i = 0; i < 1000; ++i) {
    const auto cells = pool.find(4, lengths);
    ASSERT_TRUE(cells.ok());
    for (const uint32_t cell : *cells) pool.assign(cell, 0, static_cast<int32_t>(lengths[0]++));
  }
}

TEST(CellPool, HandsOutTheLowestCellsFirst) {
  CellPool pool(32, 0);
  const std::vector<std::size_t> lengths{0};
  EXPECT_EQ(*pool.find(3, lengths), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(pool.used_end(), 0u);
  pool.assign(5, 0, 0);
  EXPECT_EQ(pool.used_end(), 6u);
  EXPECT_EQ(*pool.find(6, lengths), (std::vector<uint32_t>{0, 1, 2, 3, 4, 6}));
}

}  // namespace
}  // namespace hocket::test
