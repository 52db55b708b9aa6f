// Any JSON at all is either a clean error that names what is wrong, or a request whose numbers are in their ranges.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "http/chat_request.h"
#include "support/fake_chat_service.h"

namespace hocket {
namespace {

void use(const GenerationParams& params) {
  CHECK(params.n >= 1);
  for (const auto& value : {params.temperature, params.top_p, params.min_p, params.repeat_penalty, params.dry_base})
    CHECK(!value || (std::isfinite(*value) && *value >= 0));
  for (const LogitBias& bias : params.logit_bias) CHECK(!std::isnan(bias.bias));
}

}  // namespace
}  // namespace hocket

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, std::size_t n) {
  using namespace hocket;
  static FakeChatService service;
  static const ServerOptions options;
  const auto json = parse_json(std::string_view(reinterpret_cast<const char*>(bytes), n));
  if (!json.ok()) {
    CHECK(!json.error().message.empty());
    return 0;
  }
  const HttpRequest http;
  for (const bool needs_model : {true, false}) {
    const auto chat = read_chat_request(*json, http, service, options, needs_model);
    if (chat.ok()) {
      use(chat->request.params);
      CHECK(!chat->request.messages.empty());
    } else {
      CHECK(!chat.error().message.empty());
      CHECK(chat.error().code != ErrorCode::kInternal);
    }
  }
  const auto completion = read_completion_request(*json, http, service, options);
  if (completion.ok()) {
    use(completion->request.params);
    CHECK(!completion->request.prompts.empty());
  } else {
    CHECK(!completion.error().message.empty());
  }
  return 0;
}
