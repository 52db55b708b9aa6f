// memory/kv_cache.h: what attention layers keep of each token: keys and values, latents, indexer keys.
//
// Layers of the same kind share one CellPool: a token has one cell number in all full layers, and another in all
// windowed layers, whose pool is only as large as the windows need. A step goes: place() finds cells, the graph writes
// and reads them, commit() makes them part of the sequences. Without commit() nothing has happened.
//
// Owns     per layer K [head_dim_k · n_kv_head, n_cells], V [head_dim_v · n_kv_head, n_cells] (none for latents) and
//          index keys [n_index, n_cells]; nothing for layers that keep no rows.
// Threads  one user at a time.
// Errors   create(): kOutOfMemory. place(): kBusy. restore(): kInvalid for a snapshot of another model, type or
//          damaged.
// Cost     cells take memory of the system from their first use on, lowest first.
//              place() and the masks O(n_tokens · n_cells); fork() and truncate() O(n_cells), no data moves.
#pragma once

#include <ggml-backend.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/device.h"
#include "compute/graph.h"
#include "memory/cell_pool.h"
#include "memory/layer_memory.h"
#include "memory/sequence_memory.h"

namespace hocket {

struct KvCacheOptions {
  std::size_t n_ctx = 0;  // cells of full layers
  std::size_t n_seqs = 1;
  std::size_t n_batch = 512;  // most tokens of one step
  CacheType type_k = CacheType::kF16;
  CacheType type_v = CacheType::kF16;
};

// Where the tokens of a step go, for one pool.
struct PoolPlacement {
  std::vector<uint32_t> cells;  // of each token of the batch
  std::size_t n_kv = 0;         // the step reads cells [0, n_kv)
};

struct PlacedToken {
  SeqId seq;
  int32_t position;
};

struct Placement {
  std::vector<PlacedToken> tokens;
  std::vector<PoolPlacement> pools;  // in the order of KvCache::n_pools()
};

class KvCache {
 public:
  static Result<std::unique_ptr<KvCache>> create(std::vector<KvLayerSpec> layers, const KvCacheOptions& options,
                                                 ggml_backend_dev_t device);
  // Bytes that create() would take.
  static std::size_t bytes(const std::vector<KvLayerSpec>& layers, const KvCacheOptions& options);
  // A cache with tensors of the right shape and no memory, to measure graphs with.
  static std::unique_ptr<KvCache> without_data(std::vector<KvLayerSpec> layers, const KvCacheOptions& options,
                                               ggml_backend_dev_t device);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  // ---- a step
  // Positions continue each sequence's length, in the order of `seqs`.
  Result<Placement> place(std::span<const SeqId> seqs);
  void commit(const Placement& placement);
  // Mask rows [n_kv] for the queries `rows` (indices into the placement's tokens; 0 visible, -inf not), as F16.
  void fill_mask(const Placement& placement, std::size_t pool, std::span<const uint32_t> rows,
                 std::span<ggml_fp16_t> mask) const;
  // The pool's first n_kv cells by the positions of what they hold in this step, empty ones last; −1 in front where
  // that is how they lie.
  void fill_order(const Placement& placement, std::size_t pool, std::span<int32_t> order) const;
  // The largest n_kv that a step can have.
  std::size_t max_n_kv(std::size_t pool) const;

  std::size_t n_pools() const { return pools_.size(); }
  std::size_t shortest_window() const;  // 0: every layer sees everything
  std::size_t pool_of_layer(std::size_t layer) const { return layers_[layer].pool; }
  const KvLayerSpec& spec(std::size_t layer) const { return layers_[layer].spec; }
  Tensor k(std::size_t layer) const { return layers_[layer].k; }
  Tensor v(std::size_t layer) const { return layers_[layer].v; }          // nullptr for latents
  Tensor index(std::size_t layer) const { return layers_[layer].index; }  // nullptr without an indexer

  // ---- sequences, as SequenceMemory has them
  std::size_t bytes_per_token() const;
  std::size_t device_bytes() const;
  std::size_t n_seqs() const { return lengths_.size(); }
  std::size_t n_cells() const { return options_.n_ctx; }
  std::size_t n_free_cells() const;
  std::size_t length(SeqId seq) const { return lengths_[static_cast<std::size_t>(seq)]; }
  bool valid(SeqId seq) const { return seq >= 0 && static_cast<std::size_t>(seq) < lengths_.size(); }
  bool can_truncate(SeqId seq, std::size_t n_tokens) const;
  Result<void> truncate(SeqId seq, std::size_t n_tokens);
  void clear(SeqId seq);
  Result<void> fork(SeqId source, SeqId target);
  Result<std::vector<std::byte>> snapshot(SeqId seq) const;
  Result<void> restore(SeqId seq, std::span<const std::byte> snapshot);
  // Tokens in a snapshot; 0 when it has no header.
  static std::size_t snapshot_length(std::span<const std::byte> snapshot);

 private:
  struct Layer {
    KvLayerSpec spec;
    std::size_t pool = 0;  // meaningless when the layer keeps no rows
    Tensor k = nullptr, v = nullptr, index = nullptr;
  };

  KvCache(std::vector<KvLayerSpec> layers, const KvCacheOptions& options);
  // Makes the first n_cells of a pool readable: what nobody has written must not be a NaN behind a mask.
  void prepare(std::size_t pool, std::size_t n_cells);
  // Every tensor that a snapshot contains, layer by layer, with the pool of its cells.
  struct Part {
    Tensor tensor;
    std::size_t pool;
  };
  std::vector<Part> parts() const;
  // Equal for caches that can read each other's snapshots: windows, types and row widths.
  uint64_t layout() const;

  KvCacheOptions options_;
  std::vector<Layer> layers_;
  std::vector<CellPool> pools_;
  std::vector<std::size_t> lengths_;
  std::vector<std::size_t> n_prepared_;  // of each pool
  ggml_context* context_ = nullptr;
  ggml_backend_buffer_t buffer_ = nullptr;
};

}  // namespace hocket
