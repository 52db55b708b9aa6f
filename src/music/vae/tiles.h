// music/vae/tiles.h: how a long signal is cut into windows that overlap, so that each part comes out as if uncut.
//
// Threads  pure functions.
// Source   ace-step.md N-45: the network sees about 9 frames to each side, so an overlap of 12 is exact.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace hocket {

struct Tiling {
  int64_t chunk_frames = 0;     // a window's length; 0: as the free memory allows
  int64_t overlap_frames = 12;  // to each side
};

// Positions [window_first, window_last) are computed, [core_first, core_last) are kept.
struct Tile {
  int64_t window_first, window_last, core_first, core_last;
  bool operator==(const Tile&) const = default;
};

// Tiles of n positions; `chunk` ≥ 1. The overlap is halved while a window would have no core.
std::vector<Tile> make_tiles(int64_t n, int64_t chunk, int64_t overlap);

// Called before the first tile and after each one.
using TileProgress = std::function<void(std::size_t n_done, std::size_t n_tiles)>;

}  // namespace hocket
