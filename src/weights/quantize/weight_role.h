// weights/quantize/weight_role.h: what each weight of a model is for, as far as a quantiser asks.
//
// Threads  pure functions.
// Errors   RecipeModel::read(): kUnsupported for files whose weights are never quantised, kBadModel naming a key.
// Source   ace-step.md §2.7.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

// What recipes ask about a model.
struct RecipeModel {
  enum class Kind { kLanguage, kMusic, kMusicText };  // of ACE-Step: the text encoder has rules of its own

  static Result<RecipeModel> read(const GgufFile& file);

  Kind kind = Kind::kLanguage;
  int64_t n_layer = 0;
  int64_t heads_per_kv_head = 1;
  int64_t n_expert = 0;
  bool tied = false;  // the embedding is the head, too
  bool with_importance = false;
};

// Whether a quantiser may touch a tensor at all.
bool may_quantise(const RecipeModel& model, const TensorInfo& tensor);

enum class WeightRole { kOther, kEmbedding, kHead, kQuery, kKey, kValue, kQkv, kAttentionOut, kGate, kUp, kDown };
WeightRole weight_role(const RecipeModel& model, const TensorInfo& tensor);

// N of "blk.N." or "layers.N.".
std::optional<int64_t> weight_layer(std::string_view tensor_name);

}  // namespace hocket
