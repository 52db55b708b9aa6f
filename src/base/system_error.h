// base/system_error.h: the error of a call of the operating system that has just failed.
//
//   if (::fstat(fd, &status) != 0) return system_error("read", path);   // "cannot read PATH: Permission denied"
//
// Threads  any; the reason is the calling thread's errno.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace hocket {

// kIo, param `path`.
Error system_error(std::string_view what, const std::filesystem::path& path);

}  // namespace hocket
