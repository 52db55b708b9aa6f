// http/request_body.h: what every POST endpoint does first: parse, look at `model`, judge unknown fields.
//
// Threads  pure functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "engine/model_host.h"
#include "engine/music_service.h"
#include "http/exchange.h"
#include "http/field_reader.h"
#include "http/metrics_log.h"
#include "http/options.h"
#include "http/server_stats.h"

namespace hocket {

// What endpoints work with.
struct Api {
  const ServerOptions& options;
  ModelHost& host;
  const ServerStats& stats;
  MetricsLog* metrics_log = nullptr;  // nullptr: none is kept
  MusicService* music = nullptr;      // nullptr: this server makes no music
};

Result<Json> parse_body(const HttpRequest& request, const Api& api);

// The model that a body's `model` names, loaded if it is not there. Where the server has no such model: the first one
// with options.any_model, else kNotFound with reason "model_not_found". Without `model`: kInvalid if it is `required`,
// else the first one.
Result<std::shared_ptr<ChatService>> service_for(const Json& body, const HttpRequest& request, const Api& api,
                                                 bool required = true);
// The same for requests without a body, by `model` of the query, which may be absent.
Result<std::shared_ptr<ChatService>> service_of_query(const HttpRequest& request, const Api& api);
// The status of the model that the query names; kNotFound as above. Loads nothing.
Result<ModelStatus> model_of_query(const HttpRequest& request, const Api& api);

// The first fault of `fields`; in strict mode (an option, or the header X-Hocket-Strict: true) also fields that nobody
// read.
Result<void> finish_fields(const FieldReader& fields, const HttpRequest& request, const ServerOptions& options);

}  // namespace hocket
