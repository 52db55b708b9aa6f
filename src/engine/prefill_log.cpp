#include "engine/prefill_log.h"

#include <fmt/format.h>

namespace hocket {

std::optional<std::string> PrefillLog::line(std::size_t n_done, Clock::time_point now) {
  constexpr std::chrono::seconds kInterval{5};
  if (n_done >= n_total_ || now - last_ < kInterval) return std::nullopt;
  last_ = now;
  return fmt::format("request {}: {} of {} prompt tokens after {:.0f} s", request_id_, n_done, n_total_,
                     ms_between(start_, now) / 1000);
}

}  // namespace hocket
