#include "base/log_tail.h"
#include "http/endpoints/endpoints.h"
#include "http/sse.h"

namespace hocket {
namespace {

// How long a line may be awaited before the client is looked at.
constexpr std::chrono::milliseconds kLookInterval{500};

void follow_log(ClientLink& link, std::chrono::milliseconds ping_interval) {
  DisconnectWatch watch(link);
  auto last_write = Clock::now();
  uint64_t last = 0;
  while (!watch.gone()) {
    std::string text;
    for (const LogLine& line : log_lines_after(last, kLookInterval)) {
      text += "data: " + line.text + "\n\n";
      last = line.number;
    }
    if (text.empty() && ping_interval.count() > 0 && Clock::now() - last_write >= ping_interval) text = kSsePing;
    if (text.empty()) continue;
    if (!link.write(text)) return;
    last_write = Clock::now();
  }
  link.close_after();
}

}  // namespace

HttpResponse get_logs(const HttpRequest& request, const Api& api) {
  return sse_response([interval = api.options.ping_interval](ClientLink& link) { follow_log(link, interval); });
}

}  // namespace hocket
