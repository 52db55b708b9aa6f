// http/service_json.h: what the service tells about itself and its settings, as JSON; one spelling for every endpoint.
//
// Threads  pure functions.
#pragma once

#include "base/json.h"
#include "engine/chat_service.h"

namespace hocket {

// An entry of /v1/models, under one of the model's names.
Json model_json(const ServiceInfo& info, const std::string& id);
// What /props says of the service.
Json service_json(const ServiceInfo& info);

std::string_view cache_status_name(CacheStatus status);

// The names that llama-server uses for request fields.
Json sampling_json(const SamplingParams& p);

}  // namespace hocket
