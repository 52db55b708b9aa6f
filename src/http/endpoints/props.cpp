#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

// The names that llama-server uses for request fields.
Json sampling_json(const SamplingParams& p) {
  Json json = Json::object();
  json["seed"] = p.seed;
  json["temperature"] = p.temperature;
  json["dynatemp_range"] = p.dynatemp_range;
  json["dynatemp_exponent"] = p.dynatemp_exponent;
  json["top_k"] = p.top_k;
  json["top_p"] = p.top_p;
  json["min_p"] = p.min_p;
  json["top_n_sigma"] = p.top_n_sigma;
  json["xtc_probability"] = p.xtc_probability;
  json["xtc_threshold"] = p.xtc_threshold;
  json["typical_p"] = p.typical_p;
  json["repeat_last_n"] = p.penalty_last_n;
  json["repeat_penalty"] = p.repeat_penalty;
  json["presence_penalty"] = p.presence_penalty;
  json["frequency_penalty"] = p.frequency_penalty;
  json["dry_multiplier"] = p.dry_multiplier;
  json["dry_base"] = p.dry_base;
  json["dry_allowed_length"] = p.dry_allowed_length;
  json["dry_penalty_last_n"] = p.dry_penalty_last_n;
  json["dry_sequence_breakers"] = p.dry_sequence_breakers;
  json["mirostat"] = p.mirostat;
  json["mirostat_tau"] = p.mirostat_tau;
  json["mirostat_eta"] = p.mirostat_eta;
  json["min_keep"] = p.min_keep;
  json["ignore_eos"] = p.ignore_eos;
  json["samplers"] = p.samplers;
  return json;
}

Json limits_json(const HttpLimits& limits) {
  Json json = Json::object();
  json["max_body_bytes"] = limits.max_body_bytes;
  json["max_messages"] = limits.max_messages;
  json["max_tools"] = limits.max_tools;
  json["max_stop_strings"] = limits.max_stop_strings;
  json["max_n"] = limits.max_n;
  json["max_top_logprobs"] = limits.max_top_logprobs;
  json["max_logit_bias"] = limits.max_logit_bias;
  return json;
}

Json memory_json(const MemoryPlan& memory) {
  return Json::object({{"weight_bytes", memory.weight_bytes},
                       {"cache_bytes", memory.cache_bytes},
                       {"compute_bytes", memory.compute_bytes}});
}

Json drafts_json(const ServiceInfo& info) {
  if (info.drafts.kind == DraftOptions::Kind::kNone) return nullptr;
  const bool by_model = info.drafts.kind == DraftOptions::Kind::kModel;
  Json json = Json::object();
  json["source"] = by_model ? "model" : "lookup";
  json["n_max"] = info.drafts.n_max ? Json(*info.drafts.n_max) : Json(nullptr);
  if (by_model) {
    json["model_path"] = info.drafts.model_path;
    json["p_min"] = info.drafts.p_min;
    json["memory"] = memory_json(info.draft_memory);
  }
  return json;
}

}  // namespace

HttpResponse get_props(const HttpRequest& request, const Api& api) {
  const auto service = api.host.service();
  if (!service) return error_response(service.error());
  const ServiceInfo& info = (*service)->info();
  Json json = Json::object();
  Json settings = Json::object();
  settings["n_ctx"] = info.n_ctx;
  settings["params"] = sampling_json(info.default_sampling);
  json["default_generation_settings"] = std::move(settings);
  json["total_slots"] = 1;
  json["model_alias"] = info.model_id;
  json["model_path"] = info.model_path;
  json["modalities"] = Json::object({{"vision", false}, {"audio", false}});
  json["chat_template"] = info.chat_template;
  json["chat_template_caps"] = Json::object({{"supports_tools", info.tools}, {"supports_thinking", info.thinking}});
  json["bos_token"] = info.bos_text;
  json["eos_token"] = info.eos_text;
  json["build_info"] = api.options.build_info;
  json["system_fingerprint"] = info.fingerprint;
  json["memory"] = memory_json(info.memory);
  json["drafts"] = drafts_json(info);
  json["limits"] = limits_json(api.options.limits);
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

}  // namespace hocket
