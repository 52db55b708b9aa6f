// base/random_id.h: identifiers that nobody can guess.
//
// Threads  any.
#pragma once

#include <string>

namespace hocket {

// 128 bits of the system's random source as 32 hexadecimal digits.
std::string random_id();

}  // namespace hocket
