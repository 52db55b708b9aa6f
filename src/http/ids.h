// http/ids.h: identifiers that nobody can guess, and the ones that clients bring.
//
// Threads  any.
#pragma once

#include <string>
#include <string_view>

namespace hocket {

// 128 bits of the system's random source as 32 hexadecimal digits.
std::string random_id();

// [A-Za-z0-9._-]{1,128}: what a client may use as its request id.
bool acceptable_request_id(std::string_view id);

}  // namespace hocket
