#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/music_json.h"
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
  const auto model = model_of_query(request, api);
  // A server for music alone still has something to tell.
  const bool music_only = !model && api.music && api.host.models().empty();
  if (!model && !music_only) return error_response(model.error());
  Json json = Json::object();
  if (model && model->service) json = service_json(model->service->info());
  if (model && !model->service) {
    json["model_alias"] = model->id;
    json["model_path"] = model->path;
  }
  if (model) json["loaded"] = model->service != nullptr;
  if (api.music) {
    json["version"] = api.options.build_info;
    add_music_props(json, *api.music);
  }
  json["build_info"] = api.options.build_info;
  json["limits"] = limits_json(api.options.limits);
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

}  // namespace hocket
