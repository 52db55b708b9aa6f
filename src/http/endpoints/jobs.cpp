#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/music_json.h"

namespace hocket {
namespace {

HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

Result<std::string> job_id(const HttpRequest& request) {
  const std::string* id = request.query_value("id");
  if (!id || id->empty()) return Error(ErrorCode::kInvalid, "Missing id parameter", "id");
  return *id;
}

bool asks_for(const HttpRequest& request, std::string_view name) {
  const std::string* value = request.query_value(name);
  return value && *value == "1";
}

// The body that clients of acestep.cpp expect: one file by itself where the job has only one kind of result.
HttpResponse result_response(const JobStatus& job, std::vector<BlobFile> files) {
  const bool single =
      job.record.kind == music_task_name(MusicTask::kCompose) || job.record.kind == music_task_name(MusicTask::kVae);
  if (single && files.size() == 1) return file_response(std::move(files.front()), false);
  return mixed_response(std::move(files));
}

Result<HttpResponse> look_at_job(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY_ASSIGN(const std::string id, job_id(request));
  const std::string owner = job_owner(request, api);
  TRY_ASSIGN(const JobStatus job, music->job(id, owner));
  if (!asks_for(request, "result")) return json_response(job_json(job));
  TRY_ASSIGN(std::vector<BlobFile> files, music->results(id, owner));
  return result_response(job, std::move(files));
}

Result<HttpResponse> change_job(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY_ASSIGN(const std::string id, job_id(request));
  const std::string owner = job_owner(request, api);
  TRY(music->job(id, owner));
  if (!asks_for(request, "cancel")) return Error(ErrorCode::kInvalid, "Unknown action", "cancel");
  TRY_ASSIGN(const JobStatus job, music->cancel(id, owner));
  Json json = job_json(job);
  // It will be, at its next step.
  if (!has_ended(job.record.state)) json["status"] = "cancelled";
  return json_response(json);
}

// /v1/jobs/ID or /v1/jobs/ID/files/N
struct JobPath {
  std::string id;
  std::optional<std::size_t> file;
};
Result<JobPath> parse_job_path(const HttpRequest& request) {
  constexpr std::string_view kFiles = "/files/";
  JobPath path;
  path.id = request.path.substr(std::string_view("/v1/jobs/").size());
  const std::size_t slash = path.id.find('/');
  if (slash == std::string::npos) return path;
  const std::string rest = path.id.substr(slash);
  path.id.resize(slash);
  std::size_t n = 0;
  const char* const end = rest.data() + rest.size();
  const auto [at, fault] = rest.starts_with(kFiles) ? std::from_chars(rest.data() + kFiles.size(), end, n)
                                                    : std::from_chars_result{rest.data(), std::errc::invalid_argument};
  if (fault != std::errc() || at != end)
    return Error(ErrorCode::kNotFound, fmt::format("there is no {}", request.path.substr(0, 200)));
  path.file = n;
  return path;
}

Result<HttpResponse> show_job(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY_ASSIGN(const JobPath path, parse_job_path(request));
  const std::string owner = job_owner(request, api);
  if (!path.file) {
    TRY_ASSIGN(const JobStatus job, music->job(path.id, owner));
    return json_response(job_json(job));
  }
  TRY_ASSIGN(std::vector<BlobFile> files, music->results(path.id, owner));
  if (*path.file >= files.size())
    return Error(ErrorCode::kNotFound, fmt::format("the job has {} files", files.size()), "file");
  return file_response(std::move(files[*path.file]), true);
}

Result<HttpResponse> drop_job(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY_ASSIGN(const JobPath path, parse_job_path(request));
  if (path.file) return Error(ErrorCode::kInvalid, "files go with their job: DELETE /v1/jobs/{id}", "file");
  TRY(music->forget(path.id, job_owner(request, api)));
  return json_response(Json::object({{"id", path.id}, {"deleted", true}}));
}

Result<HttpResponse> list_jobs(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  Json list = Json::object({{"object", "list"}, {"data", Json::array()}});
  for (const JobStatus& job : music->jobs(job_owner(request, api))) list["data"].push_back(job_json(job));
  return json_response(list);
}

}  // namespace

HttpResponse get_job(const HttpRequest& request, const Api& api) {
  return respond(look_at_job(request, api));
}

HttpResponse post_job(const HttpRequest& request, const Api& api) {
  return respond(change_job(request, api));
}

HttpResponse get_jobs(const HttpRequest& request, const Api& api) {
  return respond(list_jobs(request, api));
}

HttpResponse get_one_job(const HttpRequest& request, const Api& api) {
  return respond(show_job(request, api));
}

HttpResponse delete_job(const HttpRequest& request, const Api& api) {
  return respond(drop_job(request, api));
}

}  // namespace hocket
