#include "lm/arch/registry.h"

#include <fmt/format.h>

namespace hocket {

const std::vector<ArchitectureRow>& architectures() {
  static const std::vector<ArchitectureRow> rows{
      {"bailingmoe", bailingmoe_architecture()},
      {"bailingmoe2", bailingmoe2_architecture()},
      {"bailingmoe3", bailingmoe3_architecture()},
      {"deepseek", bailingmoe_architecture()},
      {"deepseek2", deepseek2_architecture()},
      {"gemma2", gemma2_architecture()},
      {"gemma3", gemma3_architecture()},
      {"gemma4", gemma4_architecture()},
      {"glm-dsa", glm_dsa_architecture()},
      {"glm4", glm4_architecture()},
      {"glm4moe", glm4moe_architecture()},
      {"gpt-oss", gpt_oss_architecture()},
      {"granite", granite_architecture()},
      {"granitemoe", granite_architecture()},
      {"kimi-linear", kimi_linear_architecture()},
      {"lfm2", lfm2_architecture()},
      {"lfm2moe", lfm2_architecture()},
      {"llama", llama_architecture()},
      {"mistral3", mistral3_architecture()},
      {"mistral4", deepseek2_architecture()},
      {"phi3", phi3_architecture()},
      {"qwen2", qwen2_architecture()},
      {"qwen2moe", qwen2_architecture()},
      {"qwen3", qwen3_architecture()},
      {"qwen35", qwen35_architecture()},
      {"qwen35moe", qwen35_architecture()},
      {"qwen3moe", qwen3_architecture()},
      {"qwen3next", qwen3next_architecture()},
      {"qwen3vl", qwen3_architecture()},
      {"qwen3vlmoe", qwen3_architecture()},
      {"smollm3", smollm3_architecture()},
  };
  return rows;
}

std::string block_prefix(std::size_t il) {
  return fmt::format("blk.{}.", il);
}

Result<std::vector<bool>> read_window_pattern(const HParams& hp, const Metadata& metadata, std::size_t period) {
  const auto n_layer = static_cast<std::size_t>(hp.n_layer);
  std::vector<bool> windowed(n_layer, false);
  if (hp.n_swa == 0) return windowed;
  const std::string key = hp.key("attention.sliding_window_pattern");
  const MetadataValue* value = metadata.find(key);
  if (value && std::holds_alternative<MetadataArray>(*value)) {
    TRY_ASSIGN(const std::vector<bool>* list, metadata.booleans(key));
    if (list->size() < n_layer)
      return Error(ErrorCode::kBadModel, fmt::format("{} has {} entries for {} layers", key, list->size(), n_layer),
                   key);
    windowed.assign(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(n_layer));
    return windowed;
  }
  TRY_ASSIGN(const int64_t n, metadata.integer_or(key, static_cast<int64_t>(period), 0, 4096));
  for (std::size_t il = 0; il < n_layer; ++il)
    windowed[il] = n == 0 || il % static_cast<std::size_t>(n) < static_cast<std::size_t>(n) - 1;
  return windowed;
}

}  // namespace hocket
