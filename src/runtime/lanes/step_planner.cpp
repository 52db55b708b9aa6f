#include "runtime/lanes/step_planner.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"

namespace hocket {
namespace {

// Hidden states alone and logits come from different graphs.
bool shares(StepOutput a, StepOutput b) {
  return (a == StepOutput::kHidden) == (b == StepOutput::kHidden);
}

}  // namespace

std::vector<std::size_t> StepPlanner::choose(const std::vector<LaneWish>& wishes) {
  ++turn_;
  std::set<std::string> present;
  std::vector<std::size_t> decodes, chunks;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const StepWish& wish = wishes[i].wish;
    CHECK(wish.n_tokens <= n_budget_);
    present.insert(wishes[i].tenant);
    if (wish.kind == StepWish::Kind::kDecode) decodes.push_back(i);
    if (wish.kind == StepWish::Kind::kPrefill) chunks.push_back(i);
  }
  std::erase_if(tenants_, [&](const auto& entry) { return !present.contains(entry.first); });
  std::sort(decodes.begin(), decodes.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(served_[wishes[a].lane], a) < std::pair(served_[wishes[b].lane], b);
  });
  std::sort(chunks.begin(), chunks.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(tenants_[wishes[i].tenant], served_[wishes[i].lane], wishes[i].lane);
    };
    return key(a) < key(b);
  });

  std::vector<std::size_t> chosen;
  std::size_t n_tokens = 0;
  const auto take = [&](std::size_t i) {
    chosen.push_back(i);
    n_tokens += wishes[i].wish.n_tokens;
    served_[wishes[i].lane] = turn_;
    if (wishes[i].wish.kind == StepWish::Kind::kPrefill) tenants_[wishes[i].tenant] = turn_;
  };
  const auto fits = [&](std::size_t i) {
    return n_tokens + wishes[i].wish.n_tokens <= n_budget_ &&
           (chosen.empty() || shares(wishes[chosen.front()].wish.output, wishes[i].wish.output));
  };

  // Would the next chunk go beside all the decoding there is?
  std::size_t n_decode = 0;
  for (const std::size_t i : decodes) n_decode += wishes[i].wish.n_tokens;
  const bool beside = !chunks.empty() && !decodes.empty() &&
                      n_decode + wishes[chunks.front()].wish.n_tokens <= n_budget_ &&
                      shares(wishes[chunks.front()].wish.output, wishes[decodes.front()].wish.output);
  const bool chunk_alone = !chunks.empty() && (decodes.empty() || (!beside && !chunk_was_last_));
  chunk_was_last_ = chunk_alone && !decodes.empty();

  if (!chunk_alone)
    for (const std::size_t i : decodes)
      if (fits(i)) take(i);
  if (chunk_alone || beside) {
    for (const std::size_t i : chunks) {
      if (!fits(i)) continue;
      take(i);
      if (!decodes.empty()) break;
    }
  }
  // Sequences of a lane stand together, in a stable order, so that graphs of equal steps can be used again.
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace hocket
