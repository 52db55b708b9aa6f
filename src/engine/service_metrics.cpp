#include "engine/service_metrics.h"

#include <algorithm>

namespace hocket {
namespace {

constexpr double kWaitBounds[] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
constexpr double kTokenBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
constexpr double kTotalBounds[] = {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600};

}  // namespace

void Histogram::observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

ServiceMetrics::ServiceMetrics()
    : queue_s(kWaitBounds), ttft_s(kWaitBounds), token_s(kTokenBounds), total_s(kTotalBounds) {}

void MetricsRecorder::ended(RequestOutcome outcome, const Usage& usage, const Timings& timings) {
  const std::lock_guard lock(mutex_);
  ++all_.requests[static_cast<std::size_t>(outcome)];
  all_.prompt_tokens_cached += usage.cached_tokens;
  all_.prompt_tokens_evaluated += usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens);
  all_.completion_tokens += usage.completion_tokens;
  all_.drafted_tokens += timings.drafted_tokens;
  all_.accepted_tokens += timings.accepted_tokens;
  all_.prefill_s += timings.prefill_ms / 1000;
  all_.decode_s += timings.decode_ms / 1000;
  all_.queue_s.observe(timings.queue_ms / 1000);
  all_.total_s.observe(timings.total_ms / 1000);
  if (usage.completion_tokens > 0) all_.ttft_s.observe(timings.ttft_ms / 1000);
  if (timings.decode_tokens > 0) {
    all_.token_s.observe(timings.decode_ms / 1000 / static_cast<double>(timings.decode_tokens));
  }
}

void MetricsRecorder::failed(const Error& error) {
  const RequestOutcome outcome = error.code == ErrorCode::kCancelled ? RequestOutcome::kCancelled
                                 : error.code == ErrorCode::kTimeout ? RequestOutcome::kTimeout
                                                                     : RequestOutcome::kError;
  const std::lock_guard lock(mutex_);
  ++all_.requests[static_cast<std::size_t>(outcome)];
}

void MetricsRecorder::refused() {
  const std::lock_guard lock(mutex_);
  ++all_.requests[static_cast<std::size_t>(RequestOutcome::kRefused)];
}

ServiceMetrics MetricsRecorder::snapshot() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace hocket
