#include "base/system_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace hocket {

Error system_error(std::string_view what, const std::filesystem::path& path) {
  const int reason = errno;  // before anything else can change it
  return Error(ErrorCode::kIo,
               fmt::format("cannot {} {}: {}", what, path.string(), std::generic_category().message(reason)),
               path.string());
}

}  // namespace hocket
