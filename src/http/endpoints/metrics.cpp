#include <fmt/format.h>

#include "engine/build_info.h"
#include "engine/process_usage.h"
#include "http/endpoints/endpoints.h"
#include "http/prometheus.h"
#include "http/service_json.h"

namespace hocket {
namespace {

constexpr std::pair<RequestOutcome, std::string_view> kOutcomes[kRequestOutcomes] = {
    {RequestOutcome::kStop, "stop"},
    {RequestOutcome::kLength, "length"},
    {RequestOutcome::kToolCalls, "tool_calls"},
    {RequestOutcome::kEmbedding, "embedding"},
    {RequestOutcome::kCancelled, "cancelled"},
    {RequestOutcome::kTimeout, "timeout"},
    {RequestOutcome::kError, "error"},
    {RequestOutcome::kRefused, "refused"},
};

void add_process(PrometheusText& text) {
  const BuildInfo& build = build_info();
  text.family("hocket_build_info", "gauge", "What the program was built from and with; always 1.");
  text.sample({{"version", build.version},
               {"commit", build.commit},
               {"compiler", build.compiler},
               {"ggml", build.ggml_version}},
              1);
  const ProcessUsage usage = process_usage();
  text.single("process_resident_memory_bytes", "gauge", "Memory of the process, mapped weights included.",
              static_cast<double>(usage.rss_bytes));
  text.single("process_cpu_seconds_total", "counter", "CPU time of all threads.", usage.cpu_s);
  text.single("hocket_major_page_faults_total", "counter", "Page faults that waited for a disk.",
              static_cast<double>(usage.major_faults));
}

void add_model(PrometheusText& text, const ServiceInfo& info) {
  text.family("hocket_model_info", "gauge", "A model that is loaded; always 1.");
  text.sample({{"architecture", info.model.arch}, {"quantization", info.model.quantisation}}, 1);
  text.single("hocket_context_tokens", "gauge", "Size of the context.", static_cast<double>(info.n_ctx));
  text.family("hocket_planned_memory_bytes", "gauge", "Memory that the model was planned to take.");
  text.sample({{"part", "weights"}}, static_cast<double>(info.memory.weight_bytes));
  text.sample({{"part", "cache"}}, static_cast<double>(info.memory.cache_bytes));
  text.sample({{"part", "compute"}}, static_cast<double>(info.memory.compute_bytes));
}

void add_requests(PrometheusText& text, const ServiceMetrics& all) {
  text.family("hocket_requests_total", "counter", "Requests that passed the checks, by how they ended.");
  for (const auto& [outcome, name] : kOutcomes) {
    text.sample({{"outcome", name}}, static_cast<double>(all.requests[static_cast<std::size_t>(outcome)]));
  }
  text.single("hocket_requests_running", "gauge", "Requests being answered.", static_cast<double>(all.n_running));
  text.single("hocket_requests_queued", "gauge", "Requests that wait.", static_cast<double>(all.n_queued));
  text.family("hocket_prompt_tokens_total", "counter", "Prompt tokens, by whether they had to be evaluated.");
  text.sample({{"source", "evaluated"}}, static_cast<double>(all.prompt_tokens_evaluated));
  text.sample({{"source", "cached"}}, static_cast<double>(all.prompt_tokens_cached));
  text.single("hocket_generated_tokens_total", "counter", "Tokens of answers.",
              static_cast<double>(all.completion_tokens));
  text.family("hocket_draft_tokens_total", "counter", "Tokens that were drafted, by whether they were generated.");
  text.sample({{"result", "accepted"}}, static_cast<double>(all.accepted_tokens));
  text.sample({{"result", "rejected"}}, static_cast<double>(all.drafted_tokens - all.accepted_tokens));
  text.single("hocket_prefill_seconds_total", "counter", "Time spent on prompts.", all.prefill_s);
  text.single("hocket_decode_seconds_total", "counter", "Time spent on answers.", all.decode_s);
  text.histogram("hocket_queue_seconds", "Time in the queue.", all.queue_s);
  text.histogram("hocket_time_to_first_token_seconds", "From the request to the first token.", all.ttft_s);
  text.histogram("hocket_time_per_token_seconds", "Mean time between the tokens of a reply.", all.token_s);
  text.histogram("hocket_request_seconds", "From the request to the end of the reply.", all.total_s);
}

void add_cache(PrometheusText& text, const CacheReport& report) {
  text.single("hocket_cache_entries", "gauge", "Kept prompts.", static_cast<double>(report.prefixes.n_entries));
  text.single("hocket_cache_tokens", "gauge", "Tokens of kept prompts, shared beginnings counted once.",
              static_cast<double>(report.prefixes.n_tokens));
  text.single("hocket_cache_evictions_total", "counter", "Kept prompts that made room for others.",
              static_cast<double>(report.prefixes.n_evicted));
  text.family("hocket_cache_lookups_total", "counter", "Prompts, by what was kept of them.");
  for (std::size_t i = 0; i < kCacheStatuses; ++i) {
    text.sample({{"status", cache_status_name(static_cast<CacheStatus>(i))}},
                static_cast<double>(report.prefixes.n_found[i]));
  }
}

void add_sessions(PrometheusText& text, const SessionStats& stats) {
  const auto number = [](auto n) { return static_cast<double>(n); };
  text.single("hocket_sessions", "gauge", "Saved sessions.", number(stats.n_sessions));
  text.family("hocket_session_bytes", "gauge", "Bytes of saved sessions, shared ones counted once, by where they are.");
  text.sample({{"place", "ram"}}, number(stats.ram_bytes));
  text.sample({{"place", "disk"}}, number(stats.disk_bytes));
  text.family("hocket_session_budget_bytes", "gauge", "Most bytes of saved sessions, by where they are.");
  text.sample({{"place", "ram"}}, number(stats.most_ram_bytes));
  text.sample({{"place", "disk"}}, number(stats.most_disk_bytes));
  text.single("hocket_session_saves_pending", "gauge", "Saves that wait to be written.", number(stats.n_pending));
  text.family("hocket_session_saves_total", "counter", "Saves, by what became of them.");
  text.sample({{"result", "stored"}}, number(stats.n_saved));
  text.sample({{"result", "over_budget"}}, number(stats.n_skipped));
  text.sample({{"result", "disk_error"}}, number(stats.n_failed));
  text.single("hocket_session_restores_total", "counter", "Prompts that started from a saved session.",
              number(stats.n_restored));
  text.single("hocket_session_refusals_total", "counter", "Saved sessions that could not be used.",
              number(stats.n_refused));
  text.single("hocket_session_forks_total", "counter", "Sessions that were forked.", number(stats.n_forked));
  text.single("hocket_session_evictions_total", "counter", "Saved sessions that made room for others.",
              number(stats.n_evicted));
}

void add_jobs(PrometheusText& text, const JobStats& stats) {
  const auto number = [](auto n) { return static_cast<double>(n); };
  text.single("hocket_jobs_queued", "gauge", "Jobs that wait.", number(stats.n_queued));
  text.single("hocket_jobs_running", "gauge", "Jobs that run.", number(stats.n_running));
  text.single("hocket_jobs_kept", "gauge", "Jobs that have ended and can be asked about.", number(stats.n_kept));
  text.family("hocket_job_bytes", "gauge", "Files of jobs: of those that wait or run, and of results.");
  text.sample({{"files", "inputs"}}, number(stats.input_bytes));
  text.sample({{"files", "results"}}, number(stats.result_bytes));
  text.family("hocket_jobs_total", "counter", "Jobs that have ended since the start, by how.");
  for (const auto& [kind, ended] : stats.ended)
    for (const JobState state : {JobState::kDone, JobState::kFailed, JobState::kCancelled})
      text.sample({{"kind", kind}, {"state", job_state_name(state)}}, number(ended.n[static_cast<std::size_t>(state)]));
  text.family("hocket_job_run_seconds_total", "counter", "Time that these jobs ran.");
  for (const auto& [kind, ended] : stats.ended) text.sample({{"kind", kind}}, ended.run_s);
}

}  // namespace

HttpResponse get_metrics(const HttpRequest& request, const Api& api) {
  PrometheusText text;
  add_process(text);
  text.single("hocket_ready", "gauge", "1 when the model of the start is loaded.",
              api.host.state() == ModelHost::State::kReady ? 1 : 0);
  text.single("hocket_http_connections", "gauge", "Open connections.", static_cast<double>(api.stats.n_connections()));
  text.family("hocket_http_responses_total", "counter", "Responses by class of status.");
  for (int kind = 1; kind <= 5; ++kind) {
    text.sample({{"class", fmt::format("{}xx", kind)}}, static_cast<double>(api.stats.n_responses(kind)));
  }
  for (const auto& service : api.host.loaded()) {
    text.set_labels({{"model", service->info().model_id}});
    add_model(text, service->info());
    add_requests(text, service->metrics());
    add_cache(text, service->cache());
    add_sessions(text, service->sessions().stats());
  }
  if (api.music) {
    text.set_labels({});
    add_jobs(text, api.music->stats());
  }
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = text.take();
  return response;
}

}  // namespace hocket
