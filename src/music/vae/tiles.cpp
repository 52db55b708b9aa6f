#include "music/vae/tiles.h"

#include <algorithm>

namespace hocket {

std::vector<Tile> make_tiles(int64_t n, int64_t chunk, int64_t overlap) {
  if (n <= chunk) return {{0, n, 0, n}};
  while (overlap > 0 && chunk - 2 * overlap <= 0) overlap /= 2;
  const int64_t stride = chunk - 2 * overlap;
  std::vector<Tile> tiles;
  for (int64_t first = 0; first < n; first += stride) {
    const int64_t last = std::min(first + stride, n);
    tiles.push_back({std::max<int64_t>(0, first - overlap), std::min(n, last + overlap), first, last});
  }
  return tiles;
}

}  // namespace hocket
