#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/service_json.h"

namespace hocket {
namespace {

std::string_view state_name(ModelStatus::State state) {
  switch (state) {
    case ModelStatus::State::kUnloaded:
      return "unloaded";
    case ModelStatus::State::kLoading:
      return "loading";
    case ModelStatus::State::kLoaded:
      return "loaded";
    case ModelStatus::State::kFailed:
      return "failed";
  }
  return "";
}

Json entry_of(const ModelStatus& model, const std::string& id) {
  Json json = model.service ? model_json(model.service->info(), id) : Json::object();
  if (!model.service) {
    json["id"] = id;
    json["object"] = "model";
    json["created"] = 0;
    json["owned_by"] = "hocket";
    json["aliases"] = model.aliases;
    json["meta"] = Json::object({{"architecture", model.architecture}});
  }
  Json status = Json::object({{"value", state_name(model.state)}});
  if (model.state == ModelStatus::State::kLoading) status["progress"] = model.progress;
  if (model.state == ModelStatus::State::kFailed && model.fault) status["error"] = model.fault->message;
  json["status"] = std::move(status);
  return json;
}

Result<HttpResponse> list(const Api& api) {
  Json data = Json::array();
  const std::vector<ModelStatus> models = api.host.models();
  for (const ModelStatus& model : models) data.push_back(entry_of(model, model.id));
  if (api.music)
    for (const std::string& name : api.music->inventory().dit)
      data.push_back(
          {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "hocket"}, {"meta", {{"kind", "music"}}}});
  HttpResponse response;
  response.body = dump_json(Json::object({{"object", "list"}, {"data", std::move(data)}}));
  return response;
}

Result<HttpResponse> one(const HttpRequest& request, const Api& api) {
  const std::string id = request.path.substr(std::string_view("/v1/models/").size());
  const std::vector<ModelStatus> models = api.host.models();
  const ModelStatus* const model = find_called(models, id);
  if (!model) return no_such_model(id.substr(0, 256), ids_of(models));
  HttpResponse response;
  response.body = dump_json(entry_of(*model, id));
  return response;
}

}  // namespace

HttpResponse get_models(const HttpRequest& request, const Api& api) {
  return respond(list(api));
}

HttpResponse get_model(const HttpRequest& request, const Api& api) {
  return respond(one(request, api));
}

}  // namespace hocket
