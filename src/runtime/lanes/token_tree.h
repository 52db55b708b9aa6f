// runtime/lanes/token_tree.h: a radix tree over tokens: which of many token paths begin like this one.
//
// A node holds the tokens of the edge that leads to it, and the ids that end there. Paths that begin alike share nodes,
// so n_tokens() counts a shared beginning once.
//
// Owns     the edges.
// Threads  one user at a time.
// Cost     insert(), erase(): linear in the path. visit(): linear in the match and in the nodes that are looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hocket {

class TokenTree {
 public:
  using Id = uint64_t;

  void insert(std::span<const TokenId> path, Id id);
  // `path` is what `id` was inserted with.
  void erase(std::span<const TokenId> path, Id id);
  bool empty() const { return n_ids_ == 0; }
  std::size_t n_tokens() const { return n_tokens_; }

  // Calls back for every id and the number of its first tokens that `tokens` begins with, the longest first, until one
  // is taken or nothing in common is left.
  void visit(std::span<const TokenId> tokens, const std::function<bool(Id, std::size_t)>& take) const;

 private:
  struct Node {
    std::vector<TokenId> edge;
    std::vector<Id> ids;
    std::map<TokenId, std::unique_ptr<Node>> children;  // by the first token of their edges
  };
  static std::size_t common(std::span<const TokenId> a, std::span<const TokenId> b);
  // Cuts a child's edge after n tokens; the new node between.
  static Node* split(std::unique_ptr<Node>& child, std::size_t n);
  // Removes what holds nothing and joins what has become one edge. Whether `node` can go.
  bool erase_below(Node& node, std::span<const TokenId> rest, Id id);
  static bool visit_all(const Node& node, const Node* except, std::size_t n_same,
                        const std::function<bool(Id, std::size_t)>& take);

  Node root_;
  std::size_t n_ids_ = 0, n_tokens_ = 0;
};

}  // namespace hocket
