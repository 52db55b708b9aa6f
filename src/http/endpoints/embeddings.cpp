#include <nlohmann/json.hpp>

#include "http/base64.h"
#include "http/chat_request.h"
#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/reply_sender.h"

namespace hocket {
namespace {

struct ParsedEmbedding {
  EmbeddingRequest request;
  bool base64 = false;
};

Result<ParsedEmbedding> read(const Json& body, const HttpRequest& request, const ChatService& service,
                             const ServerOptions& options) {
  FieldReader fields(body, "");
  ParsedEmbedding parsed;
  fields.ignore({"model"});
  parsed.request.request_id = request.request_id;
  parsed.request.inputs = read_prompts(fields, "input", options.limits.max_inputs, service.info().model.n_vocab, false);
  parsed.request.dimensions = fields.small_integer("dimensions", 1, 1'000'000);
  parsed.base64 = fields.one_of("encoding_format", {"float", "base64"}) == "base64";
  fields.string("user", 256);
  TRY(finish_fields(fields, request, options));
  return parsed;
}

Result<HttpResponse> answer(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  TRY_ASSIGN(const auto service, service_for(body, request, api));
  TRY_ASSIGN(ParsedEmbedding parsed, read(body, request, *service, api.options));
  TRY_ASSIGN(const EmbeddingResult result, watch_client(*request.link, [&](CancelToken cancel) {
               return service->embed(std::move(parsed.request), cancel);
             }));

  Json data = Json::array();
  for (std::size_t i = 0; i < result.vectors.size(); ++i) {
    Json entry = Json::object();
    entry["object"] = "embedding";
    entry["index"] = i;
    entry["embedding"] = parsed.base64 ? Json(floats_to_base64(result.vectors[i])) : Json(result.vectors[i]);
    data.push_back(std::move(entry));
  }
  Json reply = Json::object();
  reply["object"] = "list";
  reply["data"] = std::move(data);
  reply["model"] = service->info().model_id;
  reply["usage"] = Json::object({{"prompt_tokens", result.n_prompt_tokens}, {"total_tokens", result.n_prompt_tokens}});
  HttpResponse response;
  response.body = dump_json(reply);
  return response;
}

}  // namespace

HttpResponse post_embeddings(const HttpRequest& request, const Api& api) {
  return respond(answer(request, api));
}

}  // namespace hocket
