#include "runtime/lanes/lane_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hocket {
namespace {

PrefixCacheOptions prefix_options(PrefixCacheOptions options, std::size_t n_chunk, const LmRunner& runner) {
  options.rules.n_chunk = n_chunk;
  options.rules.exact = runner.rows_independent();
  return options;
}

}  // namespace

LaneMemory::LaneMemory(LmRunner& runner, const LaneMemoryOptions& options, DraftPool drafts)
    : runner_(&runner),
      n_chunk_(std::clamp<std::size_t>(options.n_chunk, 1, runner.options().n_batch)),
      sequences_(runner.memory()),
      prefixes_(sequences_, prefix_options(options.prefixes, n_chunk_, runner)),
      drafts_(std::move(drafts)) {}

Result<Sequence> LaneMemory::take_sequence() {
  while (true) {
    if (auto taken = sequences_.take()) return std::move(*taken);
    if (!prefixes_.evict_one()) return Error(ErrorCode::kBusy, "all sequences of the memory are in use");
  }
}

void LaneMemory::make_room(std::size_t n_cells) {
  while (runner_->memory().n_free_cells() < n_cells && prefixes_.evict_one()) {
  }
}

}  // namespace hocket
