// memory/layer_memory.h: what one layer of a model remembers of a sequence.
//
// An architecture says it layer by layer; the memories of this folder allocate it. A layer may keep rows for every
// token (attention), a state of fixed size (recurrent layers), both or nothing.
//
// Threads  plain values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket {

// Rows that attention keeps of each token. All 0: none.
struct KvLayerSpec {
  int64_t n_kv_head = 0;
  int64_t head_dim_k = 0;
  int64_t head_dim_v = 0;  // 0 in a latent layer
  std::size_t window = 0;  // 0: every earlier token stays visible
  int64_t n_latent = 0;    // values are the first n_latent numbers of the key row; 0: values have rows of their own
  int64_t n_index = 0;     // width of the indexer's key, 0: none

  bool any() const { return n_kv_head > 0; }
};

// Floats that a recurrent layer keeps of a sequence, whatever its length. All 0: none.
struct RecurrentLayerSpec {
  int64_t n_conv = 0;   // last inputs of short convolutions
  int64_t n_state = 0;  // matrix states

  bool any() const { return n_conv + n_state > 0; }
};

struct LayerMemory {
  KvLayerSpec kv{};
  RecurrentLayerSpec recurrent{};
};

}  // namespace hocket
