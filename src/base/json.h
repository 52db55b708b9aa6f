// base/json.h: the JSON value type and the only ways into and out of text.
//
// Json is nlohmann's ordered value (objects keep their order). This header knows it by name only; a .cpp that touches
// values includes <nlohmann/json.hpp> itself, so that headers stay cheap.
//
// Threads  plain values.
// Errors   parse_json(): kInvalid with line and column, or the limit that was passed. dump_json() never fails: bytes
// that
//          are not UTF-8 become U+FFFD.
// Cost     linear; parsing stops at the first limit.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hocket {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_depth = 64;
  std::size_t max_nodes = 100'000;
};

// Text → value. Refuses duplicate keys, NaN, comments, trailing text, bad UTF-8 and what the limits exclude.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// Value → compact text; indent ≥ 0 gives lines.
std::string dump_json(const Json& value, int indent = -1);

}  // namespace hocket
