#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace hocket {

void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "hocket: internal error at %s:%d: %s\n", file, line, what);
  std::abort();
}

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kBadModel:
      return "bad_model";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kPeer:
      return "peer";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace hocket
