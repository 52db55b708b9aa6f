// http/ids.h: the identifiers that clients bring.
//
// Threads  any.
#pragma once

#include <string_view>

namespace hocket {

// [A-Za-z0-9._-]{1,128}: what a client may use as its request id.
bool acceptable_request_id(std::string_view id);

}  // namespace hocket
