// lm/arch/registry.h: what the architecture files share, and their factories.
#pragma once

#include <string>
#include <vector>

#include "lm/architecture.h"

namespace hocket {

// "blk.7."
std::string block_prefix(std::size_t il);

// Which layers see only a window: the file's per-layer list or period, else the family's period, whose last layer sees
// everything. No layer when the model has no window.
Result<std::vector<bool>> read_window_pattern(const HParams& hp, const Metadata& metadata, std::size_t period);

ArchitectureFactory bailingmoe_architecture();
ArchitectureFactory bailingmoe2_architecture();
ArchitectureFactory bailingmoe3_architecture();
ArchitectureFactory deepseek2_architecture();
ArchitectureFactory gemma2_architecture();
ArchitectureFactory gemma3_architecture();
ArchitectureFactory gemma4_architecture();
ArchitectureFactory glm4_architecture();
ArchitectureFactory glm4moe_architecture();
ArchitectureFactory glm_dsa_architecture();
ArchitectureFactory gpt_oss_architecture();
ArchitectureFactory granite_architecture();
ArchitectureFactory kimi_linear_architecture();
ArchitectureFactory lfm2_architecture();
ArchitectureFactory llama_architecture();
ArchitectureFactory mistral3_architecture();
ArchitectureFactory phi3_architecture();
ArchitectureFactory qwen2_architecture();
ArchitectureFactory qwen3_architecture();
ArchitectureFactory qwen35_architecture();
ArchitectureFactory qwen3next_architecture();
ArchitectureFactory smollm3_architecture();

}  // namespace hocket
