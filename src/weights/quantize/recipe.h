// weights/quantize/recipe.h: which type a quantiser gives which tensor.
//
// A recipe has a type for most weights and rules for those that cost quality: values, the way down of the feed-forward
// block, embedding and head. Names, numbers and mixtures are those that users of llama-quantize know; ACE-Step's files
// have mixtures of their own under the same names.
//
// Threads  pure functions.
// Source   language-models.md §1.2 for the numbers; ace-step.md §2.7.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/quantize/weight_role.h"

namespace hocket {

// Types that ggml can make of floats; nothing for other names. Case does not matter: "q4_K", "IQ4_NL", "bf16".
std::optional<ggml_type> parse_weight_type(std::string_view name);
std::vector<std::string> weight_type_names();

struct Recipe;

// By name, case aside: "Q4_K_M". nullptr: there is none.
const Recipe* find_recipe(std::string_view name);
std::vector<std::string> recipe_names();
std::string_view recipe_name(const Recipe& recipe);
int64_t recipe_number(const Recipe& recipe);  // of general.file_type
ggml_type recipe_base(const Recipe& recipe);

// A weight among those of its role: `index` of `count` in order of layers.
struct WeightPlace {
  WeightRole role = WeightRole::kOther;
  int64_t index = 0, count = 1;
  bool expert_stack = false;
};
ggml_type recipe_type(const Recipe& recipe, const RecipeModel& model, const WeightPlace& place);

// The type whose blocks divide a row where those of `wanted` do not: the nearest of no fewer bits.
ggml_type fitting_type(ggml_type wanted, int64_t row_length);

}  // namespace hocket
