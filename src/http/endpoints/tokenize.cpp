#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "http/chat_request.h"
#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

// llama-server shows a piece as text, or as its bytes when they are not whole characters.
Json piece_json(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

// `content`: a string, or an array that mixes strings and ids.
Result<std::vector<TokenId>> tokenize_content(FieldReader& fields, ChatService& service, const EncodeOptions& options) {
  const std::size_t n_vocab = service.info().model.n_vocab;
  const Json* content = fields.find("content");
  if (!content) return Error(ErrorCode::kInvalid, "content is missing", "content");
  if (content->is_string()) return service.tokenize(content->get_ref<const std::string&>(), options);
  if (!content->is_array())
    return Error(ErrorCode::kInvalid, fmt::format("content must be a string or an array, not {}", json_kind(*content)),
                 "content");
  std::vector<TokenId> all;
  EncodeOptions part = options;
  for (std::size_t i = 0; i < content->size(); ++i) {
    const Json& item = (*content)[i];
    if (item.is_string()) {
      TRY_ASSIGN(const std::vector<TokenId> ids, service.tokenize(item.get_ref<const std::string&>(), part));
      all.insert(all.end(), ids.begin(), ids.end());
    } else if (item.is_number_unsigned() && item.get<uint64_t>() < n_vocab) {
      all.push_back(item.get<TokenId>());
    } else {
      const std::string path = indexed_path("content", i);
      return Error(ErrorCode::kInvalid, fmt::format("{} must be a string or a token id below {}", path, n_vocab), path);
    }
    part.add_special = false;  // only the beginning gets a BOS
  }
  return all;
}

Result<HttpResponse> tokenize(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  TRY_ASSIGN(const auto service, service_for(body, request, api, false));
  FieldReader fields(body, "");
  EncodeOptions options;
  options.add_special = fields.boolean("add_special").value_or(false);
  options.parse_special = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  fields.ignore({"content", "model"});
  TRY(finish_fields(fields, request, api.options));
  TRY_ASSIGN(const std::vector<TokenId> ids, tokenize_content(fields, *service, options));
  Json tokens = Json::array();
  for (const TokenId id : ids) {
    if (with_pieces)
      tokens.push_back(Json::object({{"id", id}, {"piece", piece_json(service->token_bytes(id))}}));
    else
      tokens.push_back(id);
  }
  return json_response(Json::object({{"tokens", std::move(tokens)}}));
}

Result<HttpResponse> detokenize(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  TRY_ASSIGN(const auto service, service_for(body, request, api, false));
  FieldReader fields(body, "");
  fields.ignore({"model"});
  const std::size_t n_vocab = service->info().model.n_vocab;
  std::vector<TokenId> ids;
  if (const Json* tokens = fields.array("tokens", SIZE_MAX)) {
    for (std::size_t i = 0; i < tokens->size() && fields.ok(); ++i) {
      const Json& id = (*tokens)[i];
      if (id.is_number_unsigned() && id.get<uint64_t>() < n_vocab)
        ids.push_back(id.get<TokenId>());
      else
        fields.fail(indexed_path("tokens", i), fmt::format("tokens[{}] is not a token id below {}", i, n_vocab));
    }
  } else {
    fields.fail("tokens", "tokens is missing");
  }
  TRY(finish_fields(fields, request, api.options));
  TRY_ASSIGN(const std::string text, service->detokenize(ids));
  return json_response(Json::object({{"content", text}}));
}

Result<HttpResponse> apply_template(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  TRY_ASSIGN(const auto service, service_for(body, request, api, false));
  TRY_ASSIGN(const ParsedChat parsed, read_chat_request(body, request, *service, api.options));
  TRY_ASSIGN(const std::string prompt, service->apply_template(parsed.request));
  return json_response(Json::object({{"prompt", prompt}}));
}

}  // namespace

HttpResponse post_tokenize(const HttpRequest& request, const Api& api) {
  return respond(tokenize(request, api));
}
HttpResponse post_detokenize(const HttpRequest& request, const Api& api) {
  return respond(detokenize(request, api));
}
HttpResponse post_apply_template(const HttpRequest& request, const Api& api) {
  return respond(apply_template(request, api));
}

}  // namespace hocket
