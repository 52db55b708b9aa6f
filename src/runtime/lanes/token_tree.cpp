#include "runtime/lanes/token_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hocket {

std::size_t TokenTree::common(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t n = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

TokenTree::Node* TokenTree::split(std::unique_ptr<Node>& child, std::size_t n) {
  auto between = std::make_unique<Node>();
  const auto cut = child->edge.begin() + static_cast<std::ptrdiff_t>(n);
  between->edge.assign(child->edge.begin(), cut);
  child->edge.erase(child->edge.begin(), cut);
  const TokenId first = child->edge.front();
  between->children.emplace(first, std::move(child));
  child = std::move(between);
  return child.get();
}

void TokenTree::insert(std::span<const TokenId> path, Id id) {
  Node* node = &root_;
  while (!path.empty()) {
    std::unique_ptr<Node>& child = node->children[path.front()];
    if (!child) {
      child = std::make_unique<Node>();
      child->edge.assign(path.begin(), path.end());
      n_tokens_ += path.size();
    }
    const std::size_t n = common(child->edge, path);
    node = n < child->edge.size() ? split(child, n) : child.get();
    path = path.subspan(n);
  }
  node->ids.push_back(id);
  ++n_ids_;
}

bool TokenTree::erase_below(Node& node, std::span<const TokenId> rest, Id id) {
  if (rest.empty()) {
    CHECK(std::erase(node.ids, id) == 1);
    --n_ids_;
  } else {
    const auto found = node.children.find(rest.front());
    CHECK(found != node.children.end() && common(found->second->edge, rest) == found->second->edge.size());
    Node& child = *found->second;
    if (erase_below(child, rest.subspan(child.edge.size()), id)) {
      n_tokens_ -= child.edge.size();
      node.children.erase(found);
    }
  }
  if (&node == &root_ || !node.ids.empty()) return false;
  if (node.children.size() == 1) {
    std::unique_ptr<Node> only = std::move(node.children.begin()->second);
    node.edge.insert(node.edge.end(), only->edge.begin(), only->edge.end());
    node.ids = std::move(only->ids);
    auto children = std::move(only->children);
    node.children = std::move(children);
  }
  return node.ids.empty() && node.children.empty();
}

void TokenTree::erase(std::span<const TokenId> path, Id id) {
  erase_below(root_, path, id);
}

bool TokenTree::visit_all(const Node& node, const Node* except, std::size_t n_same,
                          const std::function<bool(Id, std::size_t)>& take) {
  for (const Id id : node.ids)
    if (take(id, n_same)) return true;
  for (const auto& [first, child] : node.children)
    if (child.get() != except && visit_all(*child, nullptr, n_same, take)) return true;
  return false;
}

void TokenTree::visit(std::span<const TokenId> tokens, const std::function<bool(Id, std::size_t)>& take) const {
  // Nodes on the way, with the number of tokens in common up to their ends, or into the last one's edge.
  std::vector<std::pair<const Node*, std::size_t>> way{{&root_, 0}};
  std::size_t n_same = 0;
  while (n_same < tokens.size()) {
    const Node& node = *way.back().first;
    const auto found = node.children.find(tokens[n_same]);
    if (found == node.children.end()) break;
    const Node& child = *found->second;
    const std::size_t n = common(child.edge, tokens.subspan(n_same));
    n_same += n;
    way.emplace_back(&child, n_same);
    if (n < child.edge.size()) break;
  }
  const Node* seen = nullptr;
  for (auto at = way.rbegin(); at != way.rend() && at->second > 0; ++at) {
    if (visit_all(*at->first, seen, at->second, take)) return;
    seen = at->first;
  }
}

}  // namespace hocket
