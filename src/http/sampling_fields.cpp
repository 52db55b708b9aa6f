#include "http/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace hocket {
namespace {

// No meaning beyond, and far from where floats lose integers.
constexpr double kHuge = 1e6;
constexpr int kManyTokens = 1'000'000'000;

std::vector<LogitBias> read_logit_bias(FieldReader& fields, const HttpLimits& limits, std::size_t n_vocab) {
  std::vector<LogitBias> biases;
  const Json* map = fields.object("logit_bias");
  if (!map) return biases;
  if (map->size() > limits.max_logit_bias) {
    fields.fail("logit_bias", fmt::format("logit_bias has more than {} entries", limits.max_logit_bias));
    return biases;
  }
  for (const auto& [key, value] : map->items()) {
    TokenId id = kNoToken;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (fault != std::errc() || end != key.data() + key.size() || id < 0 || static_cast<std::size_t>(id) >= n_vocab) {
      fields.fail("logit_bias",
                  fmt::format("logit_bias: \"{}\" is not a token id below {}", key.substr(0, 32), n_vocab));
      return biases;
    }
    const double bias = value.is_number() ? value.get<double>() : -1000;
    if (!(bias >= -100 && bias <= 100)) {
      fields.fail("logit_bias." + key, fmt::format("logit_bias.{} must be a number between -100 and 100", key));
      return biases;
    }
    biases.push_back({id, static_cast<float>(bias)});
  }
  return biases;
}

std::optional<std::vector<std::string>> read_strings(FieldReader& fields, std::string_view name, std::size_t max_items,
                                                     std::size_t max_bytes, std::size_t min_bytes = 0) {
  const Json* array = fields.array(name, max_items);
  if (!array) return std::nullopt;
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Json& item = (*array)[i];
    const std::string* text = item.is_string() ? &item.get_ref<const std::string&>() : nullptr;
    if (!text || text->size() < min_bytes || text->size() > max_bytes) {
      const std::string at_least = min_bytes > 0 ? fmt::format("{} to ", min_bytes) : "at most ";
      fields.fail(indexed_path(name, i),
                  fmt::format("{}[{}] must be a string of {}{} bytes", name, i, at_least, max_bytes));
      return std::nullopt;
    }
    strings.push_back(*text);
  }
  return strings;
}

void read_dry(FieldReader& fields, GenerationParams& params) {
  params.dry_multiplier = fields.real("dry_multiplier", 0, kHuge);
  params.dry_base = fields.real("dry_base", 1, kHuge);
  params.dry_allowed_length = fields.small_integer("dry_allowed_length", 1, kManyTokens);
  params.dry_penalty_last_n = fields.small_integer("dry_penalty_last_n", -1, kManyTokens);
  params.dry_sequence_breakers = read_strings(fields, "dry_sequence_breakers", 64, 40, 1);
}

}  // namespace

std::vector<std::string> read_stop(FieldReader& fields, const HttpLimits& limits) {
  const Json* value = fields.find("stop");
  if (!value) return {};
  std::vector<std::string> stops;
  if (value->is_string()) {
    stops.push_back(fields.string("stop", limits.max_stop_bytes).value_or(""));
  } else if (value->is_array()) {
    stops = read_strings(fields, "stop", limits.max_stop_strings, limits.max_stop_bytes).value_or(stops);
  } else {
    fields.fail("stop", fmt::format("stop must be a string or an array of strings, not {}", json_kind(*value)));
  }
  stops.erase(std::remove(stops.begin(), stops.end(), std::string()), stops.end());
  return stops;
}

std::string read_user(FieldReader& fields) {
  std::string user = fields.string("user", 256).value_or("");
  const std::string cache_key = fields.string("prompt_cache_key", 256).value_or("");
  const std::string safety = fields.string("safety_identifier", 256).value_or("");
  return !user.empty() ? user : !cache_key.empty() ? cache_key : safety;
}

ResponseFormat read_response_format(FieldReader& fields, const HttpLimits& limits) {
  ResponseFormat format;
  const Json* value = fields.object("response_format");
  if (!value) return format;
  FieldReader inner(*value, fields.path_of("response_format"));
  const std::string type = inner.one_of("type", {"text", "json_object", "json_schema"}).value_or("");
  if (type.empty()) inner.fail("type", "response_format.type is missing");

  const Json* schema = inner.object("schema");
  if (const Json* named = inner.object("json_schema")) {
    FieldReader wrapper(*named, inner.path_of("json_schema"));
    wrapper.string("name", 256);
    wrapper.boolean("strict");
    if (const Json* nested = wrapper.object("schema")) schema = nested;
    if (auto checked = wrapper.check(); !checked) inner.fail(checked.error());
  }
  if (type == "json_schema" && !schema)
    inner.fail("json_schema.schema", "response_format.json_schema.schema is missing");
  if (schema && json_depth(*schema) > limits.max_schema_depth)
    inner.fail("json_schema.schema",
               fmt::format("the JSON schema is nested deeper than {} levels", limits.max_schema_depth));
  if (type == "json_object") format.kind = ResponseFormat::Kind::kJsonObject;
  if (type != "text" && schema) {
    format.kind = ResponseFormat::Kind::kJsonSchema;
    format.schema_json = dump_json(*schema);
  }
  if (auto checked = inner.check(); !checked) fields.fail(checked.error());
  return format;
}

void read_sampling(FieldReader& fields, const HttpLimits& limits, std::size_t n_vocab, GenerationParams& params) {
  params.n = fields.small_integer("n", 1, limits.max_n).value_or(1);
  params.seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  params.stop = read_stop(fields, limits);
  params.logit_bias = read_logit_bias(fields, limits, n_vocab);

  params.temperature = fields.real("temperature", 0, 2);
  params.top_p = fields.real("top_p", 0, 1);
  params.presence_penalty = fields.real("presence_penalty", -2, 2);
  params.frequency_penalty = fields.real("frequency_penalty", -2, 2);

  params.top_k = fields.small_integer("top_k", -1, kManyTokens);
  if (params.top_k == -1) params.top_k = 0;  // both mean off
  params.min_p = fields.real("min_p", 0, 1);
  params.repeat_penalty = fields.real("repeat_penalty", 0, kHuge);
  if (const auto other_name = fields.real("repetition_penalty", 0, kHuge); other_name && !params.repeat_penalty)
    params.repeat_penalty = other_name;
  if (params.repeat_penalty == 0.0f) fields.fail("repeat_penalty", "repeat_penalty must be greater than 0");
  params.repeat_last_n = fields.small_integer("repeat_last_n", -1, kManyTokens);

  params.typical_p = fields.real("typical_p", 0, 1);
  params.top_n_sigma = fields.real("top_n_sigma", -1, kHuge);
  params.xtc_probability = fields.real("xtc_probability", 0, 1);
  params.xtc_threshold = fields.real("xtc_threshold", 0, 1);
  params.dynatemp_range = fields.real("dynatemp_range", 0, 2);
  params.dynatemp_exponent = fields.real("dynatemp_exponent", 0, kHuge);
  params.mirostat = fields.small_integer("mirostat", 0, 2);
  params.mirostat_tau = fields.real("mirostat_tau", 0, kHuge);
  params.mirostat_eta = fields.real("mirostat_eta", 0, kHuge);
  params.min_keep = fields.small_integer("min_keep", 0, kManyTokens);
  read_dry(fields, params);
  params.samplers = read_strings(fields, "samplers", 32, 32);
  params.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  params.grammar = fields.string("grammar", limits.max_grammar_bytes).value_or("");
}

}  // namespace hocket
