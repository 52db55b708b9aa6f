// http/sse_reader.h: server-sent events out of a stream of bytes.
//
// Threads  one user at a time.
// Errors   take(): kPeer for an event of more than kMostEventBytes.
// Source   the HTML standard, "Server-sent events", as far as data goes: other fields and comments are skipped.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hocket {

class SseReader {
 public:
  static constexpr std::size_t kMostEventBytes = std::size_t{16} << 20;

  // The next bytes, cut anywhere. on_data gets the data of each event that they complete, its lines joined by '\n'.
  Result<void> take(std::string_view bytes, const std::function<void(const std::string&)>& on_data);

 private:
  void end_line(const std::function<void(const std::string&)>& on_data);

  std::string line_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a line feed that follows ends the same line
};

}  // namespace hocket
