// base/check.h: assertions about our own code.
//
// CHECK(condition) ends the process with file, line and text when the condition is false. It states what only a bug of
// ours can break; input never reaches one (see base/result.h).
#pragma once

namespace hocket {

[[noreturn]] void check_failed(const char* file, int line, const char* what);

}  // namespace hocket

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::hocket::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
