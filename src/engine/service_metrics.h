// engine/service_metrics.h: what a service has done since its start, counted for dashboards and alerts.
//
// Numbers only grow, but for what a snapshot takes from elsewhere. Histograms have fixed bounds in seconds.
//
// Owns     counters.
// Threads  MetricsRecorder: any. Snapshots are plain values.
// Cost     a lock and some additions a request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/requests.h"

namespace hocket {

// Counts by upper bound; counts[i] are the values in (bounds[i-1], bounds[i]], the last those above all bounds.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}
  void observe(double value);
  std::span<const double> bounds() const { return bounds_; }
  const std::vector<uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;  // static
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// How a request ended. Refused ones were never accepted; their requests were right.
enum class RequestOutcome { kStop, kLength, kToolCalls, kEmbedding, kCancelled, kTimeout, kError, kRefused };
inline constexpr std::size_t kRequestOutcomes = 8;

struct ServiceMetrics {
  ServiceMetrics();
  std::array<uint64_t, kRequestOutcomes> requests{};  // by outcome
  uint64_t prompt_tokens_evaluated = 0, prompt_tokens_cached = 0, completion_tokens = 0;
  uint64_t drafted_tokens = 0, accepted_tokens = 0;
  double prefill_s = 0, decode_s = 0;
  // Of replies that ended well.
  Histogram queue_s, ttft_s, token_s, total_s;  // token_s: mean time between the tokens of a reply
  // At the time of the snapshot.
  std::size_t n_running = 0, n_queued = 0;
};

class MetricsRecorder {
 public:
  void ended(RequestOutcome outcome, const Usage& usage, const Timings& timings);
  // Cancelled, timed out, or failed; before or after it ran.
  void failed(const Error& error);
  void refused();
  ServiceMetrics snapshot() const;

 private:
  mutable std::mutex mutex_;
  ServiceMetrics all_;
};

}  // namespace hocket
