// music/planner/answer.h: what the planning language model wrote, read back into fields.
//
// Threads  pure functions; any text is accepted.
// Source   ace-step.md §6.4.
#pragma once

#include <string>
#include <string_view>

#include "music/request.h"

namespace hocket {

// Unset fields are 0 or "".
struct PlannerAnswer {
  int bpm = 0;
  float duration = 0;
  std::string keyscale, timesignature, language, caption, lyrics;
};

PlannerAnswer parse_answer(std::string_view text);

struct MergeRules {
  bool take_caption = false;
  bool take_lyrics = false;
};

// `base` with what it leaves open; `asked` is the request that the caption falls back to.
MusicRequest merge_answer(MusicRequest base, const PlannerAnswer& answer, const MergeRules& rules,
                          const MusicRequest& asked);

}  // namespace hocket
