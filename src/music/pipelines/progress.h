// music/pipelines/progress.h: how far a piece of music is.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace hocket {

struct MusicProgress {
  std::string_view stage;  // "source", "text", "codes", "diffusion", "decode", "write", …
  std::size_t step = 0;    // done
  std::size_t steps = 0;   // of this stage; 0: unknown
};

// Called by the thread that works.
using MusicProgressFunction = std::function<void(const MusicProgress&)>;

}  // namespace hocket
