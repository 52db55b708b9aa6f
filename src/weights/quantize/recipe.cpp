#include "weights/quantize/recipe.h"

#include <algorithm>
#include <cctype>

namespace hocket {

namespace {

using Role = WeightRole;

// Which of the layers of a role.
enum class Layers {
  kAll,
  kFirst2,
  kFirst4,
  kFirst16th,
  kFirst8th,
  kMiddle,       // without the first and the last eighth
  kSpread,       // the first and the last eighth, and every third between them
  kMusicSpread,  // the same idea in the numbers of ACE-Step's quantiser
};

// Which models.
enum class When { kAlways, kShared, kImportance, kNoImportance };
constexpr int64_t kSharedHeads = 4;  // query heads of a key head from which on values are worth more bits

struct Rule {
  Role role;
  ggml_type type;
  Layers layers = Layers::kAll;
  When when = When::kAlways;
};

bool holds(const Rule& rule, const RecipeModel& model, const WeightPlace& place) {
  if (rule.role != place.role) return false;
  switch (rule.when) {
    case When::kAlways:
      break;
    case When::kShared:
      if (model.heads_per_kv_head < kSharedHeads) return false;
      break;
    case When::kImportance:
      if (!model.with_importance) return false;
      break;
    case When::kNoImportance:
      if (model.with_importance) return false;
      break;
  }
  const int64_t i = place.index, n = place.count;
  switch (rule.layers) {
    case Layers::kAll:
      return true;
    case Layers::kFirst2:
      return i < 2;
    case Layers::kFirst4:
      return i < 4;
    case Layers::kFirst16th:
      return i < n / 16;
    case Layers::kFirst8th:
      return i < n / 8;
    case Layers::kMiddle:
      return i >= n / 8 && i < 7 * n / 8;
    case Layers::kSpread:
      return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    case Layers::kMusicSpread:
      return i < n / 9 || i >= n - n / 7 || i % 3 == 0;
  }
  return false;
}

}  // namespace

// The first rule that holds decides, else the base.
struct Recipe {
  std::string_view name;
  int64_t number;
  ggml_type base;
  ggml_type embedding;  // of language models whose head is another matrix
  ggml_type head;
  std::vector<Rule> rules = {};
  // Of ACE-Step's files.
  std::optional<ggml_type> music_embedding = {};
  std::vector<Rule> music_rules = {};
  std::optional<ggml_type> experts = {};
};

namespace {

constexpr ggml_type F32 = GGML_TYPE_F32, F16 = GGML_TYPE_F16, BF16 = GGML_TYPE_BF16, Q4_0 = GGML_TYPE_Q4_0,
                    Q4_1 = GGML_TYPE_Q4_1, Q5_0 = GGML_TYPE_Q5_0, Q5_1 = GGML_TYPE_Q5_1, Q8_0 = GGML_TYPE_Q8_0,
                    Q2_K = GGML_TYPE_Q2_K, Q3_K = GGML_TYPE_Q3_K, Q4_K = GGML_TYPE_Q4_K, Q5_K = GGML_TYPE_Q5_K,
                    Q6_K = GGML_TYPE_Q6_K, IQ1_S = GGML_TYPE_IQ1_S, IQ1_M = GGML_TYPE_IQ1_M,
                    IQ2_XXS = GGML_TYPE_IQ2_XXS, IQ2_XS = GGML_TYPE_IQ2_XS, IQ2_S = GGML_TYPE_IQ2_S,
                    IQ3_XXS = GGML_TYPE_IQ3_XXS, IQ3_S = GGML_TYPE_IQ3_S, IQ4_NL = GGML_TYPE_IQ4_NL,
                    IQ4_XS = GGML_TYPE_IQ4_XS, TQ1_0 = GGML_TYPE_TQ1_0, TQ2_0 = GGML_TYPE_TQ2_0,
                    MXFP4 = GGML_TYPE_MXFP4, NVFP4 = GGML_TYPE_NVFP4, Q1_0 = GGML_TYPE_Q1_0, Q2_0 = GGML_TYPE_Q2_0;

constexpr ggml_type kWeightTypes[] = {F32,     F16,   BF16,   Q1_0,   Q2_0,  Q4_0,  Q4_1,  Q5_0,    Q5_1,   Q8_0,
                                      Q2_K,    Q3_K,  Q4_K,   Q5_K,   Q6_K,  IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S,
                                      IQ3_XXS, IQ3_S, IQ4_NL, IQ4_XS, TQ1_0, TQ2_0, MXFP4, NVFP4};

// Two bits and less: values, the first ways down and the attention's result take more.
std::vector<Rule> tiny_rules(ggml_type bumped, std::optional<ggml_type> attention_out) {
  std::vector<Rule> rules{{Role::kValue, Q4_K, Layers::kAll, When::kShared},
                          {Role::kValue, bumped},
                          {Role::kDown, bumped, Layers::kFirst8th}};
  if (attention_out) rules.push_back({Role::kAttentionOut, *attention_out});
  return rules;
}

std::vector<Rule> spread(ggml_type type, Layers layers) {
  return {{Role::kValue, type, layers}, {Role::kDown, type, layers}};
}

std::vector<Rule> with(std::vector<Rule> rules, Rule more) {
  rules.push_back(more);
  return rules;
}

const std::vector<Recipe>& recipes() {
  using L = Layers;
  using W = When;
  static const std::vector<Recipe> kRecipes{
      {"F32", 0, F32, F32, F32},
      {"F16", 1, F16, F16, F16},
      {"BF16", 32, BF16, BF16, BF16},
      {"Q1_0", 40, Q1_0, Q1_0, Q6_K},
      {"Q2_0", 41, Q2_0, Q2_0, Q6_K},
      {"Q4_0", 2, Q4_0, Q4_0, Q6_K, {{Role::kDown, Q4_1, L::kFirst8th, W::kImportance}}},
      {"Q4_1", 3, Q4_1, Q4_1, Q6_K},
      {"Q5_0", 8, Q5_0, Q5_0, Q6_K, {{Role::kDown, Q5_1, L::kFirst8th, W::kImportance}}},
      {"Q5_1", 9, Q5_1, Q5_1, Q6_K},
      {"Q8_0", 7, Q8_0, Q8_0, Q8_0, {}, Q8_0},
      {"Q2_K",
       10,
       Q2_K,
       Q2_K,
       Q6_K,
       {{Role::kValue, Q4_K, L::kAll, W::kShared},
        {Role::kValue, Q3_K},
        {Role::kDown, Q3_K},
        {Role::kAttentionOut, Q3_K}},
       Q6_K,
       spread(Q4_K, L::kFirst4)},
      {"Q2_K_S", 21, Q2_K, Q2_K, Q6_K, {{Role::kValue, Q4_K, L::kAll, W::kShared}, {Role::kDown, Q4_K, L::kFirst8th}}},
      {"Q3_K_S", 11, Q3_K, Q3_K, Q6_K, {}, Q6_K},
      {"Q3_K_M",
       12,
       Q3_K,
       Q3_K,
       Q6_K,
       {{Role::kValue, Q5_K, L::kFirst2},
        {Role::kValue, Q4_K},
        {Role::kDown, Q5_K, L::kFirst16th},
        {Role::kDown, Q4_K},
        {Role::kAttentionOut, Q4_K},
        {Role::kQkv, Q4_K}},
       Q6_K,
       spread(Q5_K, L::kMusicSpread)},
      {"Q3_K_L",
       13,
       Q3_K,
       Q3_K,
       Q6_K,
       {{Role::kValue, Q5_K}, {Role::kDown, Q5_K}, {Role::kAttentionOut, Q5_K}, {Role::kQkv, Q4_K}},
       Q6_K,
       with(spread(Q5_K, L::kAll), {Role::kAttentionOut, Q5_K})},
      {"Q4_K_S",
       14,
       Q4_K,
       Q4_K,
       Q6_K,
       {{Role::kValue, Q5_K, L::kFirst4}, {Role::kDown, Q5_K, L::kFirst8th}},
       Q6_K,
       spread(Q5_K, L::kFirst4)},
      {"Q4_K_M", 15, Q4_K, Q4_K, Q6_K, with(spread(Q6_K, L::kSpread), {Role::kQkv, Q5_K}), Q6_K,
       spread(Q6_K, L::kMusicSpread)},
      {"Q5_K_S", 16, Q5_K, Q5_K, Q6_K, {}, Q6_K},
      {"Q5_K_M", 17, Q5_K, Q5_K, Q6_K, with(spread(Q6_K, L::kSpread), {Role::kQkv, Q6_K}), Q6_K,
       spread(Q6_K, L::kMusicSpread)},
      {"Q6_K", 18, Q6_K, Q6_K, Q6_K, {}, Q6_K},
      {"IQ1_S", 24, IQ1_S, Q2_K, Q5_K, tiny_rules(Q2_K, IQ2_XXS)},
      {"IQ1_M", 31, IQ1_M, Q2_K, Q5_K, tiny_rules(Q2_K, IQ2_XXS)},
      {"IQ2_XXS", 19, IQ2_XXS, Q2_K, Q5_K, tiny_rules(Q2_K, {})},
      {"IQ2_XS", 20, IQ2_XS, Q2_K, Q5_K, tiny_rules(Q2_K, {})},
      {"IQ2_S", 28, IQ2_XS, IQ3_S, Q5_K, tiny_rules(IQ3_S, IQ3_S)},
      {"IQ2_M", 29, IQ2_S, IQ3_S, Q5_K, tiny_rules(IQ3_S, IQ3_S)},
      {"IQ3_XXS",
       23,
       IQ3_XXS,
       IQ3_S,
       Q5_K,
       {{Role::kValue, Q4_K, L::kAll, W::kShared},
        {Role::kValue, IQ3_S, L::kAll, W::kNoImportance},
        {Role::kKey, IQ2_S},
        {Role::kQuery, IQ2_S},
        {Role::kDown, Q4_K, L::kFirst8th, W::kNoImportance},
        {Role::kDown, Q3_K, L::kAll, W::kNoImportance},
        {Role::kAttentionOut, IQ3_S}}},
      {"IQ3_XS",
       22,
       IQ3_S,
       IQ3_S,
       Q6_K,
       {{Role::kValue, Q4_K, L::kAll, W::kShared},
        {Role::kKey, IQ3_XXS},
        {Role::kQuery, IQ3_XXS},
        {Role::kGate, IQ3_XXS, L::kMiddle},
        {Role::kUp, IQ3_XXS, L::kMiddle}}},
      {"IQ3_S", 26, IQ3_S, IQ3_S, Q6_K, {{Role::kValue, Q4_K, L::kAll, W::kShared}}},
      {"IQ3_M",
       27,
       IQ3_S,
       IQ3_S,
       Q6_K,
       {{Role::kValue, Q4_K}, {Role::kDown, Q4_K, L::kFirst8th}, {Role::kAttentionOut, Q4_K}, {Role::kQkv, Q4_K}}},
      {"IQ4_NL",
       25,
       IQ4_NL,
       IQ4_NL,
       Q6_K,
       {{Role::kValue, Q5_K, L::kAll, W::kShared}, {Role::kDown, Q5_K, L::kFirst8th, W::kNoImportance}}},
      {"IQ4_XS",
       30,
       IQ4_XS,
       IQ4_XS,
       Q6_K,
       {{Role::kValue, Q5_K, L::kAll, W::kShared}, {Role::kDown, Q5_K, L::kFirst8th, W::kNoImportance}}},
      {"TQ1_0", 36, TQ1_0, Q4_K, Q6_K},
      {"TQ2_0", 37, TQ2_0, Q4_K, Q6_K},
      {"MXFP4_MOE", 38, Q8_0, Q8_0, Q8_0, {}, {}, {}, MXFP4},
      {"NVFP4", 39, NVFP4, NVFP4, Q6_K},
  };
  return kRecipes;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::optional<ggml_type> parse_weight_type(std::string_view name) {
  for (const ggml_type type : kWeightTypes)
    if (upper(ggml_type_name(type)) == upper(name)) return type;
  return std::nullopt;
}

std::vector<std::string> weight_type_names() {
  std::vector<std::string> names;
  for (const ggml_type type : kWeightTypes) names.emplace_back(upper(ggml_type_name(type)));
  return names;
}

const Recipe* find_recipe(std::string_view name) {
  for (const Recipe& recipe : recipes())
    if (recipe.name == upper(name)) return &recipe;
  return nullptr;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

std::string_view recipe_name(const Recipe& recipe) {
  return recipe.name;
}

int64_t recipe_number(const Recipe& recipe) {
  return recipe.number;
}

ggml_type recipe_base(const Recipe& recipe) {
  return recipe.base;
}

ggml_type recipe_type(const Recipe& recipe, const RecipeModel& model, const WeightPlace& place) {
  if (place.expert_stack && recipe.experts) return *recipe.experts;
  const bool music = model.kind != RecipeModel::Kind::kLanguage;
  if (music && place.role == Role::kEmbedding) return recipe.music_embedding.value_or(recipe.base);
  if (place.role == Role::kEmbedding) return recipe.embedding;
  if (place.role == Role::kHead) return recipe.head;
  // With eight experts keys and values are shared by so many weights that 8 bits cost next to nothing.
  constexpr int64_t kFewExperts = 8;
  const bool quantised = ggml_is_quantized(recipe.base);
  if (quantised && model.n_expert == kFewExperts && (place.role == Role::kValue || place.role == Role::kKey))
    return Q8_0;
  for (const Rule& rule : music ? recipe.music_rules : recipe.rules)
    if (holds(rule, model, place)) return rule.type;
  return recipe.base;
}

ggml_type fitting_type(ggml_type wanted, int64_t row_length) {
  const auto fits = [&](ggml_type type) { return row_length % ggml_blck_size(type) == 0; };
  if (fits(wanted)) return wanted;
  ggml_type smaller = IQ4_NL;  // blocks of 32
  if (wanted == Q4_K) smaller = Q5_0;
  if (wanted == Q5_K) smaller = Q5_1;
  if (wanted == Q6_K) smaller = Q8_0;
  if (wanted == TQ1_0 || wanted == TQ2_0 || wanted == NVFP4 || wanted == Q1_0 || wanted == Q2_0) smaller = Q4_0;
  return fits(smaller) ? smaller : F16;
}

}  // namespace hocket
