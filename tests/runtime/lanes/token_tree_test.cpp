// The tree against a list of all paths.
#include "runtime/lanes/token_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace hocket {
namespace {

using Path = std::vector<TokenId>;

std::size_t common(const Path& a, const Path& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

std::vector<std::pair<TokenTree::Id, std::size_t>> all_of(const TokenTree& tree, const Path& tokens) {
  std::vector<std::pair<TokenTree::Id, std::size_t>> out;
  tree.visit(tokens, [&](TokenTree::Id id, std::size_t n) {
    out.emplace_back(id, n);
    return false;
  });
  return out;
}

TEST(TokenTree, FindsTheLongestBeginningFirst) {
  TokenTree tree;
  tree.insert(Path{1, 2, 3}, 1);
  tree.insert(Path{1, 2, 3, 4, 5}, 2);
  tree.insert(Path{1, 2, 9}, 3);
  tree.insert(Path{7}, 4);
  EXPECT_EQ(tree.n_tokens(), 7u);
  const auto found = all_of(tree, {1, 2, 3, 4, 8});
  EXPECT_EQ(found, (decltype(found){{2, 4}, {1, 3}, {3, 2}}));
  EXPECT_TRUE(all_of(tree, {8}).empty());
}

TEST(TokenTree, StopsWhenOneIsTaken) {
  TokenTree tree;
  tree.insert(Path{1, 2}, 1);
  tree.insert(Path{1}, 2);
  int n = 0;
  tree.visit(Path{1, 2}, [&](TokenTree::Id id, std::size_t) {
    ++n;
    return id == 1;
  });
  EXPECT_EQ(n, 1);
}

TEST(TokenTree, IsAListOfPaths) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  TokenTree tree;
  std::map<TokenTree::Id, Path> paths;
  for (TokenTree::Id id = 1; id < 3000; ++id) {
    if (paths.size() > 40 || (!paths.empty() && random() % 3 == 0)) {
      auto victim = paths.begin();
      std::advance(victim, random() % paths.size());
      tree.erase(victim->second, victim->first);
      paths.erase(victim);
    } else {
      Path path(1 + random() % 8);
      for (TokenId& token : path) token = static_cast<TokenId>(random() % 3);
      tree.insert(path, id);
      paths[id] = path;
    }
    std::set<Path> beginnings;
    for (const auto& [other, path] : paths)
      for (std::size_t n = 1; n <= path.size(); ++n)
        beginnings.insert(Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(n)));
    ASSERT_EQ(tree.n_tokens(), beginnings.size());
    ASSERT_EQ(tree.empty(), paths.empty());

    Path tokens(random() % 9);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
    auto found = all_of(tree, tokens);
    ASSERT_TRUE(
        std::is_sorted(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; }));
    std::map<TokenTree::Id, std::size_t> expected;
    for (const auto& [other, path] : paths)
      if (const std::size_t n = common(path, tokens); n > 0) expected[other] = n;
    ASSERT_EQ((std::map<TokenTree::Id, std::size_t>(found.begin(), found.end())), expected);
  }
}

}  // namespace
}  // namespace hocket
