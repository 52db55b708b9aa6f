// Any text at all is either a clean error or requests that survive being written, checked and planned.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "music/pipelines/synth_plan.h"
#include "music/planner/answer.h"
#include "music/planner/planner_prompts.h"
#include "music/request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, std::size_t n) {
  using namespace hocket;
  const std::string_view text(reinterpret_cast<const char*>(bytes), n);
  const MusicRequest merged = merge_answer({}, parse_answer(text), {true, true}, {});
  CHECK(merged.duration > 0 && merged.duration <= 600);
  const auto requests = parse_music_requests(text);
  if (!requests.ok()) {
    CHECK(!requests.error().message.empty());
    return 0;
  }
  for (const MusicRequest& request : *requests) {
    const auto again = parse_music_request(music_request_json(request));
    CHECK(again.ok());
    if (!request.check().ok()) continue;
    CHECK(*again == request);
    metadata_yaml(request);
    const auto plan = plan_synth(request, parse_audio_codes(request.audio_codes).size(), {480'000, 0}, {});
    if (!plan.ok()) continue;
    CHECK(plan->n_frames > 0 && plan->n_frames <= 15'000 && !plan->schedule.empty());
    CHECK(!plan->from_region || (plan->region_first >= 0 && plan->region_first < plan->region_last));
  }
  return 0;
}
