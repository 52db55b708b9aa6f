#include "memory/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace hocket {

namespace {

constexpr std::size_t kCellPadding = 256;  // a step reads whole groups of cells, so that its graph can be used again

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

std::size_t cells_of_pool(std::size_t window, const KvCacheOptions& options) {
  const std::size_t full = round_up(options.n_ctx, kCellPadding);
  if (window == 0) return full;
  return std::min(full, round_up(window * options.n_seqs + options.n_batch, kCellPadding));
}

struct SnapshotHeader {
  char magic[8];
  uint64_t layout;  // hash of the layers and types
  uint64_t length;
  uint64_t n_bytes;  // all of the snapshot
};
constexpr char kMagic[8] = {'H', 'K', 'V', 'S', 'E', 'Q', '0', '1'};

uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x100000001B3ull;
}

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

}  // namespace

KvCache::KvCache(std::vector<KvLayerSpec> layers, const KvCacheOptions& options)
    : options_(options), lengths_(options.n_seqs, 0) {
  CHECK(options.n_seqs >= 1 && options.n_seqs <= kMaxSeqs);
  ggml_init_params params{};
  params.mem_size = ggml_tensor_overhead() * (3 * layers.size() + 1);
  params.no_alloc = true;
  context_ = ggml_init(params);
  for (const KvLayerSpec& spec : layers) {
    Layer layer;
    layer.spec = spec;
    if (spec.any()) {
      while (layer.pool < pools_.size() && pools_[layer.pool].window() != spec.window) ++layer.pool;
      if (layer.pool == pools_.size()) pools_.emplace_back(cells_of_pool(spec.window, options), spec.window);
      const auto rows = [&](CacheType type, int64_t width) -> Tensor {
        const auto n_cells = static_cast<int64_t>(pools_[layer.pool].n_cells());
        return width == 0 ? nullptr : ggml_new_tensor_2d(context_, to_ggml(type), width, n_cells);
      };
      layer.k = rows(options.type_k, spec.head_dim_k * spec.n_kv_head);
      layer.v = rows(options.type_v, spec.head_dim_v * spec.n_kv_head);
      layer.index = rows(options.type_k, spec.n_index);
    }
    layers_.push_back(layer);
  }
  n_prepared_.assign(pools_.size(), 0);
}

KvCache::~KvCache() {
  if (buffer_) ggml_backend_buffer_free(buffer_);
  ggml_free(context_);
}

std::size_t KvCache::bytes(const std::vector<KvLayerSpec>& layers, const KvCacheOptions& options) {
  std::size_t total = 0;
  for (const KvLayerSpec& spec : layers) {
    if (!spec.any()) continue;
    const std::size_t n_cells = cells_of_pool(spec.window, options);
    total += n_cells * (ggml_row_size(to_ggml(options.type_k), spec.head_dim_k * spec.n_kv_head) +
                        ggml_row_size(to_ggml(options.type_v), spec.head_dim_v * spec.n_kv_head) +
                        ggml_row_size(to_ggml(options.type_k), spec.n_index));
  }
  return total;
}

Result<std::unique_ptr<KvCache>> KvCache::create(std::vector<KvLayerSpec> layers, const KvCacheOptions& options,
                                                 ggml_backend_dev_t device) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (const auto& [type, width] :
         {std::pair{options.type_k, layers[i].head_dim_k}, std::pair{options.type_v, layers[i].head_dim_v},
          std::pair{options.type_k, layers[i].n_index}})
      if (width % ggml_blck_size(to_ggml(type)) != 0)
        return Error(ErrorCode::kUnsupported,
                     fmt::format("a {} cache needs head sizes that are multiples of {}; layer {} has {}",
                                 cache_type_name(type), ggml_blck_size(to_ggml(type)), i, width),
                     "cache-type");
  std::unique_ptr<KvCache> cache(new KvCache(std::move(layers), options));
  if (cache->pools_.empty()) return cache;
  cache->buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(cache->context_, ggml_backend_dev_buffer_type(device));
  if (!cache->buffer_)
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot get {:.0f} MiB for the KV cache of {} cells",
                             static_cast<double>(cache->device_bytes()) / (1 << 20), options.n_ctx),
                 "ctx-size");
  return cache;
}

void KvCache::prepare(std::size_t pool, std::size_t n_cells) {
  const std::size_t first = n_prepared_[pool];
  if (n_cells <= first) return;
  for (const Part& part : parts())
    if (part.pool == pool)
      ggml_backend_tensor_memset(part.tensor, 0, first * part.tensor->nb[1], (n_cells - first) * part.tensor->nb[1]);
  n_prepared_[pool] = n_cells;
}

std::unique_ptr<KvCache> KvCache::without_data(std::vector<KvLayerSpec> layers, const KvCacheOptions& options,
                                               ggml_backend_dev_t device) {
  std::unique_ptr<KvCache> cache(new KvCache(std::move(layers), options));
  cache->buffer_ = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 0);
  for (const Part& part : cache->parts()) {
    part.tensor->buffer = cache->buffer_;
    part.tensor->data = reinterpret_cast<void*>(uintptr_t{64});
  }
  return cache;
}

// ---- a step

Result<Placement> KvCache::place(std::span<const SeqId> seqs) {
  Placement placement;
  std::vector<std::size_t> next = lengths_;
  for (const SeqId seq : seqs) {
    if (!valid(seq)) return Error(ErrorCode::kInvalid, fmt::format("there is no sequence {}", seq), "seq");
    placement.tokens.push_back({seq, static_cast<int32_t>(next[static_cast<std::size_t>(seq)]++)});
  }
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    const CellPool& pool = pools_[p];
    PoolPlacement where;
    TRY_ASSIGN(where.cells, pool.find(seqs.size(), lengths_));
    std::size_t end = pool.used_end();
    for (const uint32_t cell : where.cells) end = std::max<std::size_t>(end, cell + 1);
    where.n_kv = std::min(pool.n_cells(), round_up(end, kCellPadding));
    prepare(p, where.n_kv);
    placement.pools.push_back(std::move(where));
  }
  return placement;
}

void KvCache::commit(const Placement& placement) {
  for (std::size_t p = 0; p < pools_.size(); ++p)
    for (std::size_t i = 0; i < placement.tokens.size(); ++i)
      pools_[p].assign(placement.pools[p].cells[i], placement.tokens[i].seq, placement.tokens[i].position);
  for (const PlacedToken& token : placement.tokens)
    lengths_[static_cast<std::size_t>(token.seq)] = static_cast<std::size_t>(token.position) + 1;
}

void KvCache::fill_mask(const Placement& placement, std::size_t p, std::span<const uint32_t> rows,
                        std::span<ggml_fp16_t> mask) const {
  const CellPool& pool = pools_[p];
  const PoolPlacement& where = placement.pools[p];
  const ggml_fp16_t hidden = ggml_fp32_to_fp16(-std::numeric_limits<float>::infinity());
  const ggml_fp16_t shown = ggml_fp32_to_fp16(0.0f);
  CHECK(mask.size() == rows.size() * where.n_kv);

  // Cells that this step takes over do not show what they held before.
  std::vector<uint8_t> taken(where.n_kv, 0);
  for (const uint32_t cell : where.cells) taken[cell] = 1;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const PlacedToken query = placement.tokens[rows[r]];
    ggml_fp16_t* row = mask.data() + r * where.n_kv;
    for (std::size_t cell = 0; cell < where.n_kv; ++cell)
      row[cell] = !taken[cell] && pool.visible(static_cast<uint32_t>(cell), query.seq, query.position) ? shown : hidden;
    for (std::size_t i = 0; i <= rows[r]; ++i) {
      const PlacedToken key = placement.tokens[i];
      if (key.seq == query.seq &&
          (pool.window() == 0 || query.position - key.position < static_cast<int32_t>(pool.window())))
        row[where.cells[i]] = shown;
    }
  }
}

void KvCache::fill_order(const Placement& placement, std::size_t p, std::span<int32_t> order) const {
  const CellPool& pool = pools_[p];
  const PoolPlacement& where = placement.pools[p];
  CHECK(order.size() == where.n_kv && !order.empty());
  std::vector<int32_t> positions(where.n_kv);
  for (std::size_t cell = 0; cell < where.n_kv; ++cell) positions[cell] = pool.position(static_cast<uint32_t>(cell));
  for (std::size_t i = 0; i < where.cells.size(); ++i) positions[where.cells[i]] = placement.tokens[i].position;
  int32_t last = 0;
  bool sorted = true;
  for (const int32_t position : positions) {
    if (position == kNoPosition) continue;
    sorted = sorted && position >= last;
    last = std::max(last, position);
  }
  order[0] = -1;
  if (sorted) return;
  // Sorted by counting; empty cells are counted behind all others.
  std::vector<uint32_t> starts(static_cast<std::size_t>(last) + 3, 0);
  const auto bucket = [&](int32_t position) {
    return static_cast<std::size_t>(position == kNoPosition ? last + 1 : position);
  };
  for (const int32_t position : positions) ++starts[bucket(position) + 1];
  for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  for (std::size_t cell = 0; cell < positions.size(); ++cell)
    order[starts[bucket(positions[cell])]++] = static_cast<int32_t>(cell);
}

std::size_t KvCache::max_n_kv(std::size_t pool) const {
  return pools_[pool].n_cells();
}

// ---- sequences

std::size_t KvCache::bytes_per_token() const {
  std::size_t n = 0;
  for (const Part& part : parts()) n += part.tensor->nb[1];
  return n;
}

std::size_t KvCache::device_bytes() const {
  std::size_t n = 0;
  for (const Part& part : parts()) n += ggml_nbytes(part.tensor);
  return n;
}

std::size_t KvCache::shortest_window() const {
  std::size_t shortest = 0;
  for (const CellPool& pool : pools_)
    if (pool.window() != 0) shortest = shortest == 0 ? pool.window() : std::min(shortest, pool.window());
  return shortest;
}

std::size_t KvCache::n_free_cells() const {
  std::size_t n = options_.n_ctx;
  for (const CellPool& pool : pools_) {
    // A windowed pool never runs out before the full one does.
    if (pool.window() == 0) n = std::min(n, pool.n_free(lengths_));
  }
  return n;
}

bool KvCache::can_truncate(SeqId seq, std::size_t n_tokens) const {
  if (!valid(seq) || n_tokens > length(seq)) return false;
  return std::all_of(pools_.begin(), pools_.end(),
                     [&](const CellPool& pool) { return pool.holds_before(seq, n_tokens); });
}

Result<void> KvCache::truncate(SeqId seq, std::size_t n_tokens) {
  if (!valid(seq)) return Error(ErrorCode::kInvalid, fmt::format("there is no sequence {}", seq), "seq");
  if (!can_truncate(seq, n_tokens))
    return Error(ErrorCode::kInvalid,
                 fmt::format("sequence {} of {} tokens cannot be cut at {}", seq, length(seq), n_tokens));
  for (CellPool& pool : pools_) pool.truncate(seq, n_tokens);
  lengths_[static_cast<std::size_t>(seq)] = n_tokens;
  return {};
}

void KvCache::clear(SeqId seq) {
  CHECK(valid(seq));
  for (CellPool& pool : pools_) pool.truncate(seq, 0);
  lengths_[static_cast<std::size_t>(seq)] = 0;
}

Result<void> KvCache::fork(SeqId source, SeqId target) {
  if (!valid(source) || !valid(target) || source == target)
    return Error(ErrorCode::kInvalid, fmt::format("cannot fork sequence {} to {}", source, target), "seq");
  clear(target);
  for (CellPool& pool : pools_) pool.fork(source, target);
  lengths_[static_cast<std::size_t>(target)] = length(source);
  return {};
}

std::vector<KvCache::Part> KvCache::parts() const {
  std::vector<Part> parts;
  for (const Layer& layer : layers_)
    for (Tensor tensor : {layer.k, layer.v, layer.index})
      if (tensor) parts.push_back({tensor, layer.pool});
  return parts;
}

uint64_t KvCache::layout() const {
  uint64_t layout = 0xCBF29CE484222325ull;
  for (const CellPool& pool : pools_) layout = mix(layout, pool.window());
  for (const Part& part : parts()) {
    layout = mix(layout, part.pool);
    layout = mix(layout, static_cast<uint64_t>(part.tensor->type));
    layout = mix(layout, static_cast<uint64_t>(part.tensor->ne[0]));
  }
  return layout;
}

Result<std::vector<std::byte>> KvCache::snapshot(SeqId seq) const {
  if (!valid(seq)) return Error(ErrorCode::kInvalid, fmt::format("there is no sequence {}", seq), "seq");
  SnapshotHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.length = length(seq);
  header.layout = layout();
  header.n_bytes = sizeof header;
  std::vector<std::vector<uint32_t>> cells;
  for (const CellPool& pool : pools_) {
    cells.push_back(pool.live_cells(seq, length(seq)));
    header.n_bytes += sizeof(uint64_t) + cells.back().size() * sizeof(int32_t);
  }
  for (const Part& part : parts()) {
    header.n_bytes += cells[part.pool].size() * part.tensor->nb[1];
  }

  std::vector<std::byte> out;
  out.reserve(header.n_bytes);
  append(out, header);
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    append(out, static_cast<uint64_t>(cells[p].size()));
    for (const uint32_t cell : cells[p]) append(out, pools_[p].position(cell));
  }
  for (const Part& part : parts()) {
    const std::size_t row = part.tensor->nb[1];
    for (const uint32_t cell : cells[part.pool]) {
      out.resize(out.size() + row);
      ggml_backend_tensor_get(part.tensor, out.data() + out.size() - row, cell * row, row);
    }
  }
  CHECK(out.size() == header.n_bytes);
  return out;
}

std::size_t KvCache::snapshot_length(std::span<const std::byte> snapshot) {
  SnapshotHeader header;
  if (snapshot.size() < sizeof header) return 0;
  std::memcpy(&header, snapshot.data(), sizeof header);
  return header.length;
}

Result<void> KvCache::restore(SeqId seq, std::span<const std::byte> snapshot) {
  if (!valid(seq)) return Error(ErrorCode::kInvalid, fmt::format("there is no sequence {}", seq), "seq");
  const auto damaged = [](std::string why) { return Error(ErrorCode::kInvalid, "the snapshot " + why, "snapshot"); };
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t n) {
    if (snapshot.size() - at < n) return false;
    std::memcpy(to, snapshot.data() + at, n);
    at += n;
    return true;
  };
  SnapshotHeader header;
  if (!take(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return damaged("has no valid header");
  if (header.n_bytes != snapshot.size()) return damaged("is incomplete");
  if (layout() != header.layout) return damaged("belongs to another model or cache type");

  // Everything is checked before the sequence is touched.
  std::vector<std::vector<int32_t>> positions(pools_.size());
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    uint64_t n = 0;
    if (!take(&n, sizeof n) || n > pools_[p].n_cells()) return damaged("does not fit this cache");
    const std::size_t window = pools_[p].window();
    const uint64_t expected = window == 0 || header.length < window ? header.length : window - 1;
    if (n != expected) return damaged("does not hold the tokens it claims");
    positions[p].resize(n);
    if (!take(positions[p].data(), n * sizeof(int32_t))) return damaged("is incomplete");
    for (uint64_t i = 0; i < n; ++i)
      if (positions[p][i] != static_cast<int32_t>(header.length - n + i)) return damaged("has a gap in its positions");
  }
  std::size_t rows_bytes = 0;
  for (const Part& part : parts()) rows_bytes += positions[part.pool].size() * part.tensor->nb[1];
  if (snapshot.size() - at != rows_bytes) return damaged("has the wrong size");
  std::vector<std::size_t> lengths = lengths_;
  lengths[static_cast<std::size_t>(seq)] = 0;
  std::vector<CellPool> pools = pools_;
  std::vector<std::vector<uint32_t>> cells(pools_.size());
  for (std::size_t p = 0; p < pools.size(); ++p) {
    pools[p].truncate(seq, 0);
    TRY_ASSIGN(cells[p], pools[p].find(positions[p].size(), lengths));
    for (std::size_t i = 0; i < cells[p].size(); ++i) pools[p].assign(cells[p][i], seq, positions[p][i]);
  }
  for (std::size_t p = 0; p < pools.size(); ++p) prepare(p, pools[p].used_end());
  for (const Part& part : parts()) {
    const std::size_t row = part.tensor->nb[1];
    for (const uint32_t cell : cells[part.pool]) {
      ggml_backend_tensor_set(part.tensor, snapshot.data() + at, cell * row, row);
      at += row;
    }
  }
  pools_ = std::move(pools);
  lengths_[static_cast<std::size_t>(seq)] = header.length;
  return {};
}

}  // namespace hocket
