#include "music/vae/tile_runner.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {
namespace {

constexpr int64_t kSmallestChunk = 32;  // frames
constexpr int64_t kLargestChunk = 1024;
constexpr int64_t kProbeFrames = 32;
// A window of this much memory wastes little on its overlap; more is slower rather than faster.
constexpr std::size_t kWindowBytes = 1u << 30;

// The longest window whose buffers stay within the bounds. Buffers grow evenly with the length.
Result<int64_t> choose_chunk(const MusicCompute& compute, const TiledNetwork& network) {
  const int64_t n = std::min(network.n_positions, kProbeFrames * network.unit);
  NetworkGraph g(compute, network.max_nodes);
  g.graph().output(network.build(g, Tile{0, n, 0, n}), "result");
  TRY_ASSIGN(const auto executor, NetworkExecutor::create(compute, network.max_nodes));
  const std::size_t bytes = executor->measure(g);
  std::size_t free = 0, total = 0;
  ggml_backend_dev_memory(compute.device, &free, &total);
  const std::size_t budget = free > 0 ? std::min(kWindowBytes, free / 4) : kWindowBytes;
  const double per_frame = static_cast<double>(bytes) * static_cast<double>(network.unit) / static_cast<double>(n);
  return std::clamp(static_cast<int64_t>(static_cast<double>(budget) / std::max(1.0, per_frame)), kSmallestChunk,
                    kLargestChunk);
}

Result<void> run_with(const MusicCompute& compute, const TiledNetwork& network, const std::vector<Tile>& tiles,
                      std::size_t& n_done, const CancelToken& cancel, const TileProgress& progress, Taps* taps) {
  TRY_ASSIGN(const auto executor, NetworkExecutor::create(compute, network.max_nodes));
  if (progress) progress(n_done, tiles.size());
  while (n_done < tiles.size()) {
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    const Tile& tile = tiles[n_done];
    NetworkGraph g(compute, network.max_nodes, taps);
    Tensor result = network.build(g, tile);
    g.graph().output(result, "result");
    TRY(executor->allocate(g));
    TRY_ASSIGN(const std::vector<float> values, executor->run(g, result, cancel));
    network.take(tile, values);
    ++n_done;
    if (progress) progress(n_done, tiles.size());
  }
  return {};
}

}  // namespace

Result<void> run_tiles(const MusicCompute& compute, const TiledNetwork& network, const Tiling& tiling,
                       const CancelToken& cancel, const TileProgress& progress, Taps* taps) {
  int64_t chunk = tiling.chunk_frames;
  if (chunk == 0) {
    TRY_ASSIGN(chunk, choose_chunk(compute, network));
  }
  for (;;) {
    const auto tiles = make_tiles(network.n_positions, chunk * network.unit, tiling.overlap_frames * network.unit);
    std::size_t n_done = 0;
    auto done = run_with(compute, network, tiles, n_done, cancel, progress, taps);
    if (done.ok() || done.error().code != ErrorCode::kOutOfMemory) return done;
    // Nothing of a window that failed was taken, but windows before it were: only the first may be tried again.
    if (n_done > 0 || chunk / 2 < kSmallestChunk)
      return Error(ErrorCode::kOutOfMemory,
                   fmt::format("not enough memory for windows of {} frames; a smaller --vae-chunk needs less", chunk));
    chunk /= 2;
  }
}

}  // namespace hocket
