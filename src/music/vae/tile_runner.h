// music/vae/tile_runner.h: runs a network over the tiles of a signal, within the memory there is.
//
// Threads  one user at a time.
// Errors   kOutOfMemory when not even the smallest window fits, with what could be done; kCancelled.
// Cost     one graph for each different length of window, one window's memory at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "music/blocks/network_graph.h"
#include "music/vae/tiles.h"

namespace hocket {

struct TiledNetwork {
  int64_t n_frames = 0;     // of the whole signal
  int64_t unit = 1;         // positions of a tile that are one frame
  int64_t n_positions = 0;  // ≥ n_frames · unit
  std::size_t max_nodes = 0;
  // Builds the graph of a window of so many positions; `window` gives its input. Returns the result.
  std::function<Tensor(NetworkGraph& g, const Tile& window)> build;
  // Takes the result of a window.
  std::function<void(const Tile& tile, const std::vector<float>& result)> take;
};

Result<void> run_tiles(const MusicCompute& compute, const TiledNetwork& network, const Tiling& tiling,
                       const CancelToken& cancel, const TileProgress& progress, Taps* taps);

}  // namespace hocket
