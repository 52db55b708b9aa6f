// http/service_json.h: what the service tells about itself and its settings, as JSON; one spelling for every endpoint.
//
// Threads  pure functions.
#pragma once

#include "base/json.h"
#include "engine/chat_service.h"

namespace hocket {

// The names that llama-server uses for request fields.
Json sampling_json(const SamplingParams& p);

}  // namespace hocket
