#include "http/service_json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace hocket {
namespace {

// 0.8f as 0.8 and not as the double that it is.
double plain(float value) {
  const std::string text = fmt::format("{}", value);
  double out = value;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Json meta_json(const ServiceInfo& info) {
  const ModelSummary& model = info.model;
  Json meta = Json::object();
  meta["name"] = model.name;
  meta["architecture"] = model.arch;
  meta["quantization"] = model.quantisation;
  meta["n_params"] = model.n_params;
  meta["size"] = model.weight_bytes;
  meta["n_vocab"] = model.n_vocab;
  meta["n_embd"] = model.n_embd;
  meta["n_layer"] = model.n_layer;
  meta["n_ctx"] = info.n_ctx;
  meta["n_ctx_train"] = model.n_ctx_train;
  return meta;
}

Json memory_json(const MemoryPlan& memory) {
  return Json::object({{"weight_bytes", memory.weight_bytes},
                       {"cache_bytes", memory.cache_bytes},
                       {"compute_bytes", memory.compute_bytes}});
}

const char* source_name(DraftOptions::Kind kind) {
  switch (kind) {
    case DraftOptions::Kind::kLookup:
      return "lookup";
    case DraftOptions::Kind::kModel:
      return "model";
    default:
      return "mtp";
  }
}

Json drafts_json(const ServiceInfo& info) {
  const DraftOptions& drafts = info.drafts;
  if (drafts.kind == DraftOptions::Kind::kNone) return nullptr;
  Json json = Json::object();
  json["source"] = source_name(drafts.kind);
  json["n_max"] = drafts.n_max ? Json(*drafts.n_max) : Json(nullptr);
  if (drafts.kind == DraftOptions::Kind::kLookup) return json;
  if (!drafts.model_path.empty()) json["model_path"] = drafts.model_path;
  json["p_min"] = plain(drafts.p_min);
  json["memory"] = memory_json(info.draft_memory);
  return json;
}

}  // namespace

Json model_json(const ServiceInfo& info, const std::string& id) {
  Json json = Json::object();
  json["id"] = id;
  json["object"] = "model";
  json["created"] = info.created;
  json["owned_by"] = "hocket";
  json["aliases"] = info.aliases;
  json["meta"] = meta_json(info);
  return json;
}

Json service_json(const ServiceInfo& info) {
  Json settings = Json::object();
  settings["n_ctx"] = info.n_ctx;
  settings["params"] = sampling_json(info.default_sampling);
  Json json = Json::object();
  json["default_generation_settings"] = std::move(settings);
  json["total_slots"] = info.n_lanes;
  json["cache_cells"] = info.n_cells;
  json["model_alias"] = info.model_id;
  json["model_path"] = info.model_path;
  json["model_meta"] = meta_json(info);
  json["modalities"] = Json::object({{"vision", false}, {"audio", false}});
  json["chat_template"] = info.chat_template;
  json["chat_template_caps"] = Json::object({{"supports_tools", info.tools}, {"supports_thinking", info.thinking}});
  json["bos_token"] = info.bos_text;
  json["eos_token"] = info.eos_text;
  json["system_fingerprint"] = info.fingerprint;
  json["memory"] = memory_json(info.memory);
  json["drafts"] = drafts_json(info);
  return json;
}

std::string_view cache_status_name(CacheStatus status) {
  switch (status) {
    case CacheStatus::kDisabled:
      return "disabled";
    case CacheStatus::kMiss:
      return "miss";
    case CacheStatus::kPrefix:
      return "prefix_hit";
    case CacheStatus::kExactPrefix:
      return "exact_prefix_hit";
    case CacheStatus::kGeneratedPrefix:
      return "generated_prefix_hit";
    case CacheStatus::kExactPrompt:
      return "exact_prompt_hit";
  }
  return "";
}

Json sampling_json(const SamplingParams& p) {
  Json json = Json::object();
  json["seed"] = p.seed;
  json["temperature"] = plain(p.temperature);
  json["dynatemp_range"] = plain(p.dynatemp_range);
  json["dynatemp_exponent"] = plain(p.dynatemp_exponent);
  json["top_k"] = p.top_k;
  json["top_p"] = plain(p.top_p);
  json["min_p"] = plain(p.min_p);
  json["top_n_sigma"] = plain(p.top_n_sigma);
  json["xtc_probability"] = plain(p.xtc_probability);
  json["xtc_threshold"] = plain(p.xtc_threshold);
  json["typical_p"] = plain(p.typical_p);
  json["repeat_last_n"] = p.penalty_last_n;
  json["repeat_penalty"] = plain(p.repeat_penalty);
  json["presence_penalty"] = plain(p.presence_penalty);
  json["frequency_penalty"] = plain(p.frequency_penalty);
  json["dry_multiplier"] = plain(p.dry_multiplier);
  json["dry_base"] = plain(p.dry_base);
  json["dry_allowed_length"] = p.dry_allowed_length;
  json["dry_penalty_last_n"] = p.dry_penalty_last_n;
  json["dry_sequence_breakers"] = p.dry_sequence_breakers;
  json["mirostat"] = p.mirostat;
  json["mirostat_tau"] = plain(p.mirostat_tau);
  json["mirostat_eta"] = plain(p.mirostat_eta);
  json["min_keep"] = p.min_keep;
  json["ignore_eos"] = p.ignore_eos;
  json["samplers"] = p.samplers;
  return json;
}

}  // namespace hocket
