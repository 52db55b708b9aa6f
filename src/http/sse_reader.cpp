#include "http/sse_reader.h"

#include <fmt/format.h>

#include <utility>

namespace hocket {

Result<void> SseReader::take(std::string_view bytes, const std::function<void(const std::string&)>& on_data) {
  for (const char c : bytes) {
    const bool same_end = c == '\n' && std::exchange(after_cr_, false);
    after_cr_ = c == '\r';
    if (same_end) continue;
    if (c == '\n' || c == '\r') {
      end_line(on_data);
    } else {
      line_ += c;
      if (line_.size() + data_.size() > kMostEventBytes)
        return Error(ErrorCode::kPeer, fmt::format("an event of the server has more than {} bytes", kMostEventBytes));
    }
  }
  return {};
}

void SseReader::end_line(const std::function<void(const std::string&)>& on_data) {
  const std::string line = std::exchange(line_, std::string());
  if (line.empty()) {
    if (std::exchange(has_data_, false)) on_data(std::exchange(data_, std::string()));
    return;
  }
  const std::size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return;
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

}  // namespace hocket
