// cli/sampling_flags.h: the sampling settings that people may set: one table for the flags of serve and run, for /set
// in a conversation, and for the names in errors.
//
// Threads  the main thread.
// Errors   kInvalid; its param is the flag.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "engine/requests.h"

namespace hocket {

// --temp, --top-k, …, -s, -n: what requests get that do not say otherwise.
void add_sampling_flags(CLI::App& app, GenerationParams& params);

// Ranges of what the flags have set, so that a wrong value is found before a model is loaded.
Result<void> check_sampling_flags(const GenerationParams& params);

// Sets one value by the name of its flag (without dashes) or of its request field; "default" takes it back. Nothing
// changes on failure.
Result<void> set_sampling(GenerationParams& params, std::string_view name, std::string_view value);

// What is set, "temperature 0.7, top_k 40"; "" when nothing is.
std::string describe_sampling(const GenerationParams& params);
// What is set, as fields of a request.
Json sampling_fields(const GenerationParams& params);
// The names that set_sampling() takes, separated by spaces.
std::string sampling_names();

}  // namespace hocket
