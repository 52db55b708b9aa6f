// http/sampling_fields.h: the request fields that steer generation, the same for chat and text completion.
//
// Threads  pure functions.
#pragma once

#include "base/json.h"
#include "engine/requests.h"
#include "http/field_reader.h"
#include "http/options.h"

namespace hocket {

// Everything of GenerationParams but the token limit and logprobs, which each API names differently. Faults stay in
// `fields`.
void read_sampling(FieldReader& fields, const HttpLimits& limits, std::size_t n_vocab, GenerationParams& params);

// `stop`: a string or an array of them; empty strings are dropped.
std::vector<std::string> read_stop(FieldReader& fields, const HttpLimits& limits);

// `response_format` with the schema at any of the three places where clients put it.
ResponseFormat read_response_format(FieldReader& fields, const HttpLimits& limits);

// `user`, else `prompt_cache_key`, else `safety_identifier`.
std::string read_user(FieldReader& fields);

}  // namespace hocket
