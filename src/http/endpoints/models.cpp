#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/service_json.h"

namespace hocket {
HttpResponse get_models(const HttpRequest& request, const Api& api) {
  const auto service = api.host.service();
  const bool music_only = !service && service.error().reason == "model_not_found" && api.music;
  if (!service && !music_only) return error_response(service.error());
  Json list = Json::object();
  list["object"] = "list";
  list["data"] = Json::array();
  if (service) list["data"].push_back(model_json((*service)->info(), (*service)->info().model_id));
  if (api.music)
    for (const std::string& name : api.music->inventory().dit)
      list["data"].push_back(
          {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "hocket"}, {"meta", {{"kind", "music"}}}});
  HttpResponse response;
  response.body = dump_json(list);
  return response;
}

HttpResponse get_model(const HttpRequest& request, const Api& api) {
  const auto service = api.host.service();
  if (!service) return error_response(service.error());
  const std::string id = request.path.substr(std::string_view("/v1/models/").size());
  if (!(*service)->serves(id)) {
    Error error(ErrorCode::kNotFound, fmt::format("there is no model \"{}\"", id.substr(0, 256)), "model");
    error.reason = "model_not_found";
    return error_response(error);
  }
  HttpResponse response;
  response.body = dump_json(model_json((*service)->info(), id));
  return response;
}

}  // namespace hocket
