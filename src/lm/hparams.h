// lm/hparams.h: hyper-parameters that every architecture reads the same way, and rope scaling.
//
// Keys are "{arch}.name" of the file's metadata. An architecture reads what only it needs by itself.
//
// Threads  plain values.
// Errors   read(): kBadModel naming the key that is missing, of the wrong type, or out of range.
// Source   language-models.md §§1.3–1.5, 1.7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/metadata.h"

namespace hocket {

// Which dimensions are rotated together: (2j, 2j+1) or (j, j + n/2).
enum class RopeKind { kNone, kNorm, kNeox };

// Everything that ggml_rope_ext is told besides the data.
struct RopeSpec {
  RopeKind kind = RopeKind::kNone;
  int n_rot = 0;  // rotated dimensions of each head, the first ones
  float freq_base = 10000.0f;
  float freq_scale = 1.0f;   // 1 / factor of linear and YaRN scaling
  float ext_factor = 0.0f;   // 1: YaRN's mix, 0: none
  float attn_factor = 1.0f;  // amplitude, before YaRN's own
  float beta_fast = 32.0f, beta_slow = 1.0f;
  int n_ctx_orig = 0;
};

struct HParams {
  std::string arch;
  int64_t n_ctx_train = 0;
  int64_t n_embd = 0;
  int64_t n_layer = 0;  // without NextN blocks
  int64_t n_block = 0;  // with them
  int64_t n_vocab = 0;
  std::vector<int64_t> n_ff, n_head, n_kv_head;  // per block
  int64_t head_dim_k = 0, head_dim_v = 0;
  float rms_eps = 1e-5f;
  RopeSpec rope;  // kind is the architecture's to set
  float rope_base_swa = 10000.0f;
  int64_t n_swa = 0;        // window in tokens, 0 = none
  float attn_scale = 0.0f;  // 0: 1/√head_dim
  float attn_softcap = 0.0f, final_softcap = 0.0f;
  int64_t n_expert = 0;
  std::string pooling = "none";

  // n_vocab is the width of the embedding table, or of the token list when there is no table.
  static Result<HParams> read(const Metadata& metadata, int64_t n_vocab);

  std::string key(std::string_view name) const { return arch + "." + std::string(name); }
  float attention_scale() const;  // attn_scale or 1/√head_dim_k
};

}  // namespace hocket
