#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/service_json.h"

namespace hocket {
namespace {

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
  json["memory"] = Json::object({{"weight_bytes", info.memory.weight_bytes},
                                 {"cache_bytes", info.memory.cache_bytes},
                                 {"compute_bytes", info.memory.compute_bytes}});
  json["limits"] = limits_json(api.options.limits);
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

}  // namespace hocket
