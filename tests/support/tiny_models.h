// tests/support/tiny_models.h: hyper-parameters of a tiny model of every architecture. The conformance tests need
// nothing else: weights are synthetic. An architecture without an entry here fails them.
#pragma once

#include <optional>
#include <string>

#include "weights/metadata.h"

namespace hocket::test {

inline constexpr int64_t kTinyVocab = 96;

inline MetadataArray integers(std::vector<int64_t> items) {
  MetadataArray array;
  array.items = std::move(items);
  return array;
}
inline MetadataArray booleans(std::vector<bool> items) {
  MetadataArray array;
  array.items = std::move(items);
  return array;
}

inline std::optional<Metadata> tiny_metadata(const std::string& arch) {
  Metadata m;
  const auto set = [&](const std::string& name, MetadataValue value) { m.set(arch + "." + name, std::move(value)); };
  const auto integer = [](int64_t v) { return MetadataValue(v); };
  m.set("general.architecture", arch);
  set("context_length", integer(512));
  set("embedding_length", integer(64));
  set("block_count", integer(3));
  set("feed_forward_length", integer(96));
  set("attention.head_count", integer(4));
  set("attention.head_count_kv", integer(2));
  set("attention.layer_norm_rms_epsilon", 1e-5);
  if (arch == "llama" || arch == "qwen2") return m;
  if (arch == "qwen3" || arch == "qwen3vl") {
    set("attention.key_length", integer(24));  // not n_embd / n_head
    set("attention.value_length", integer(24));
    return m;
  }
  if (arch == "phi3") {
    set("rope.dimension_count", integer(12));
    set("rope.scaling.original_context_length", integer(64));
    return m;
  }
  if (arch == "gemma3") {
    set("block_count", integer(7));  // one layer that sees everything among windowed ones
    set("attention.sliding_window", integer(8));
    set("rope.freq_base", 1e6);
    return m;
  }
  if (arch == "gemma2") {
    set("attention.sliding_window", integer(8));
    set("attn_logit_softcapping", 2.0);
    return m;
  }
  if (arch == "smollm3") {
    set("block_count", integer(4));  // the fourth layer has no rope
    return m;
  }
  if (arch == "mistral3" || arch == "mistral4") {
    set("attention.temperature_scale", 0.1);
    set("rope.scaling.original_context_length", integer(8));
  }
  if (arch == "mistral3") return m;
  if (arch == "glm4") {
    set("rope.dimension_count", integer(8));
    return m;
  }
  if (arch == "granite" || arch == "granitemoe") {
    set("embedding_scale", 1.5);
    set("residual_scale", 0.7);
    set("logit_scale", 2.0);
    set("attention.scale", 0.3);
    if (arch == "granite") return m;
  }
  if (arch == "lfm2" || arch == "lfm2moe") {
    set("block_count", integer(4));
    set("attention.head_count_kv", integers({0, 2, 0, 2}));
    set("shortconv.l_cache", integer(3));
    if (arch == "lfm2") return m;
    set("leading_dense_block_count", integer(1));
  }
  if (arch == "qwen35" || arch == "qwen35moe" || arch == "qwen3next") {
    set("block_count", integer(5));  // the fourth layer attends
    set("attention.key_length", integer(16));
    set("attention.value_length", integer(16));
    set("rope.dimension_count", integer(8));
    set("ssm.conv_kernel", integer(4));
    set("ssm.state_size", integer(16));
    set("ssm.group_count", integer(2));
    set("ssm.time_step_rank", integer(4));
    set("ssm.inner_size", integer(64));
    if (arch == "qwen35") return m;
  }
  const bool latent =
      arch == "deepseek2" || arch == "mistral4" || arch == "glm-dsa" || arch == "kimi-linear" || arch == "bailingmoe3";
  if (latent) {
    set("attention.head_count_kv", integer(1));
    set("attention.kv_lora_rank", integer(32));
    set("attention.key_length", integer(40));
    set("attention.key_length_mla", integer(24));
    set("attention.value_length_mla", integer(20));
    set("rope.dimension_count", integer(8));
  }
  if (arch == "deepseek2" || arch == "mistral4" || arch == "glm-dsa" || arch == "bailingmoe3")
    set("attention.q_lora_rank", integer(24));
  if (arch == "glm-dsa") {
    set("attention.indexer.head_count", integer(2));
    set("attention.indexer.key_length", integer(16));
    // A choice of fewer keys than there are turns at near ties, by rounding alone: the golden model covers it.
    set("attention.indexer.top_k", integer(512));
    set("attention.indexer.types", booleans({true, false, true}));
  }
  if (arch == "kimi-linear" || arch == "bailingmoe3") {
    set("block_count", integer(4));
    set("attention.head_count_kv", integers({0, 0, 1, 0}));  // the last layer is recurrent too
    set("ssm.conv_kernel", integer(4));
    set("kda.head_dim", integer(16));
  }
  if (arch == "bailingmoe3") set("kda.gate_lower_bound", -5.0);
  if (arch == "gemma4") {
    set("block_count", integer(6));
    set("attention.head_count_kv", integers({2, 2, 2, 1, 2, 1}));
    set("attention.key_length", integer(32));
    set("attention.value_length", integer(32));
    set("attention.key_length_swa", integer(16));
    set("attention.value_length_swa", integer(16));
    set("attention.sliding_window", integer(8));
    set("attention.sliding_window_pattern", booleans({true, true, true, false, true, false}));
    set("attention.shared_kv_layers", integer(2));
    set("embedding_length_per_layer_input", integer(16));
    set("final_logit_softcapping", 30.0);
  }
  // With experts.
  set("expert_count", integer(6));
  set("expert_used_count", integer(2));
  set("expert_feed_forward_length", integer(32));
  if (arch == "qwen3moe" || arch == "qwen3vlmoe" || arch == "granitemoe" || arch == "lfm2moe" || arch == "gemma4")
    return m;
  if (arch == "qwen2moe" || arch == "qwen35moe" || arch == "qwen3next") {
    set("expert_shared_feed_forward_length", integer(40));
    return m;
  }
  if (arch == "gpt-oss") {
    set("attention.sliding_window", integer(8));
    set("rope.scaling.type", std::string("yarn"));
    set("rope.scaling.factor", 8.0);
    set("rope.scaling.original_context_length", integer(64));
    return m;
  }
  set("leading_dense_block_count", integer(1));
  set("expert_shared_count", integer(2));
  set("expert_weights_scale", 2.5);
  set("expert_weights_norm", true);
  if (arch == "bailingmoe" || arch == "deepseek" || latent) return m;
  set("rope.dimension_count", integer(8));
  if (arch == "glm4moe") return m;
  if (arch == "bailingmoe2") {
    set("expert_count", integer(8));
    set("expert_group_count", integer(4));
    set("expert_group_used_count", integer(2));
    set("expert_shared_feed_forward_length", integer(48));
    return m;
  }
  return std::nullopt;
}

// The same with a NextN block behind the layers, for families that have one.
inline std::optional<Metadata> tiny_metadata_with_nextn(const std::string& arch) {
  auto metadata = tiny_metadata(arch);
  if (!metadata) return metadata;
  const int64_t n_layer = *metadata->integer(arch + ".block_count", 1, 100);
  metadata->set(arch + ".block_count", n_layer + 1);
  metadata->set(arch + ".nextn_predict_layers", int64_t{1});
  if (arch == "bailingmoe3") metadata->set(arch + ".attention.head_count_kv", integers({0, 0, 1, 0, 1}));
  return metadata;
}

// How far two ways of computing the same logits may be apart (NMSE) with F32 weights and caches: the order of F32 sums.
// ggml's GELU goes through a table in half precision, in which a last-bit difference of the input becomes one of 2^-11.
inline double rounding_bound(const std::string& arch) {
  return arch.starts_with("gemma") ? 1e-6 : 1e-10;
}

// The architecture as part of a test's name.
inline std::string test_name(std::string arch) {
  for (char& c : arch)
    if (c == '-') c = '_';
  return arch;
}

}  // namespace hocket::test
