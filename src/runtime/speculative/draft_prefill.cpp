#include "runtime/speculative/draft_prefill.h"

namespace hocket {

Result<void> tell_of_prompt(DraftSource& source, const StepRows& rows, std::size_t first_position,
                            std::span<const TokenId> tokens) {
  if (!source.traits().hidden) return {};
  std::vector<TargetRow> target(tokens.size());
  for (std::size_t i = 0; i < target.size(); ++i) target[i].hidden = rows.hidden(i);
  return source.accept({first_position, tokens, target, 0});
}

}  // namespace hocket
