// http/request_body.h: what every POST endpoint does first: parse, look at `model`, judge unknown fields.
//
// Threads  pure functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "engine/chat_service.h"
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
  ServiceHost& host;
  const ServerStats& stats;
  MetricsLog* metrics_log = nullptr;  // nullptr: none is kept
  MusicService* music = nullptr;      // nullptr: this server makes no music
};

Result<Json> parse_body(const HttpRequest& request, const Api& api);

// `model` must be the served id or an alias (reason "model_not_found"), unless options.any_model.
void read_model(FieldReader& fields, const ChatService& service, const ServerOptions& options);

// The first fault of `fields`; in strict mode (an option, or the header X-Hocket-Strict: true) also fields that nobody
// read.
Result<void> finish_fields(const FieldReader& fields, const HttpRequest& request, const ServerOptions& options);

}  // namespace hocket
