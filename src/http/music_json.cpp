#include "http/music_json.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "http/auth.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

constexpr std::string_view kBoundary = "ace-batch-boundary";
constexpr std::string_view kMixedEnd = "--ace-batch-boundary--\r\n";

std::string_view compatible_status(JobState state) {
  switch (state) {
    case JobState::kQueued:
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kFailed:
    case JobState::kInterrupted:
      return "failed";
  }
  return {};
}

Json seconds_or_null(int64_t ms) {
  return ms > 0 ? Json(static_cast<double>(ms) / 1000) : Json(nullptr);
}

Json request_json(const MusicRequest& request) {
  auto parsed = parse_json(music_request_json(request, MusicFields::kAll));
  return parsed ? *std::move(parsed) : Json::object();
}

// A file of a mixed result with what comes before it.
struct MixedPart {
  std::string head;
  BlobFile file;
};

bool send_file(BlobFile& file, ClientLink& link) {
  std::vector<std::byte> block(256 * 1024);
  for (;;) {
    const auto n = file.read(block);
    if (!n) {
      log_error("{}", n.error().message);
      link.close_after();
      return false;
    }
    if (*n == 0) return true;
    if (!link.write({reinterpret_cast<const char*>(block.data()), *n})) return false;
  }
}

}  // namespace

Result<MusicService*> music_of(const Api& api) {
  if (api.music) return api.music;
  Error error(ErrorCode::kUnsupported, "this server makes no music: it was started without --music-models",
              "lm,text-encoder,dit,vae");
  error.reason = "models_missing";
  return error;
}

std::string job_owner(const HttpRequest& request, const Api& api) {
  if (api.options.api_keys.empty()) return {};
  const std::string_view key = shown_key(request);
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Json job_json(const JobStatus& job) {
  const JobRecord& record = job.record;
  Json json = Json::object();
  json["id"] = record.id;
  json["kind"] = record.kind;
  json["status"] = compatible_status(record.state);
  json["state"] = job_state_name(record.state);
  if (job.position > 0) json["position"] = job.position;
  if (!job.progress.stage.empty()) {
    Json progress = Json::object();
    progress["stage"] = job.progress.stage;
    progress["step"] = job.progress.step;
    progress["steps"] = job.progress.steps;
    progress["eta_s"] = job.progress.eta_s ? Json(*job.progress.eta_s) : Json(nullptr);
    json["progress"] = std::move(progress);
  }
  json["created"] = seconds_or_null(record.created_ms);
  json["started"] = seconds_or_null(record.started_ms);
  json["finished"] = seconds_or_null(record.ended_ms);
  if (record.error) {
    json["error"] = record.error->message;
    json["error_details"] = error_body(*record.error)["error"];
  }
  if (!record.warnings.empty()) json["warnings"] = record.warnings;
  if (record.state == JobState::kDone) {
    json["files"] = Json::array();
    for (std::size_t i = 0; i < record.results.size(); ++i) {
      Json file = Json::object();
      file["name"] = record.results[i].name;
      file["media_type"] = record.results[i].media_type;
      file["bytes"] = record.results[i].n_bytes;
      file["url"] = fmt::format("/v1/jobs/{}/files/{}", record.id, i);
      json["files"].push_back(std::move(file));
    }
  }
  return json;
}

void add_music_props(Json& props, const MusicService& music) {
  const MusicInventory inventory = music.inventory();
  Json models = Json::object();
  models["lm"] = inventory.lm;
  models["embedding"] = inventory.text_encoder;
  models["dit"] = inventory.dit;
  models["vae"] = inventory.vae;
  props["models"] = std::move(models);
  props["adapters"] = inventory.adapters;
  props["cli"] = Json::object({{"max_batch", music.max_batch()}});
  props["default"] = request_json(MusicRequest());
  const auto preset = [](int steps, double guidance, double shift) {
    return Json::object({{"inference_steps", steps}, {"guidance_scale", guidance}, {"shift", shift}});
  };
  props["presets"] = Json::object({{"turbo", preset(8, 1.0, 3.0)}, {"sft", preset(50, 1.0, 1.0)}});
  // What the models that are there can do, and what is missing for the rest.
  Json ready = Json::object();
  for (const MusicTask task : {MusicTask::kCompose, MusicTask::kSynth, MusicTask::kUnderstand, MusicTask::kVae}) {
    const auto able = music.ready(task);
    ready[std::string(music_task_name(task))] = able ? Json(true) : Json(able.error().message);
  }
  props["music"] = std::move(ready);
}

HttpResponse file_response(BlobFile file, bool as_attachment) {
  HttpResponse response;
  response.content_type = file.file().media_type;
  if (as_attachment)
    response.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", file.file().name));
  response.stream_bytes = file.file().n_bytes;
  response.stream = [shared = std::make_shared<BlobFile>(std::move(file))](ClientLink& link) {
    send_file(*shared, link);
  };
  return response;
}

HttpResponse mixed_response(std::vector<BlobFile> files) {
  auto parts = std::make_shared<std::vector<MixedPart>>();
  std::size_t n_bytes = kMixedEnd.size();
  for (BlobFile& file : files) {
    std::string head = fmt::format("--{}\r\nContent-Type: {}\r\n", kBoundary, file.file().media_type);
    if (file.file().media_type == "application/octet-stream")
      head += "Content-Disposition: form-data; name=\"latent\"\r\n";
    head += "\r\n";
    n_bytes += head.size() + file.file().n_bytes + 2;
    parts->push_back({std::move(head), std::move(file)});
  }
  HttpResponse response;
  response.content_type = fmt::format("multipart/mixed; boundary={}", kBoundary);
  response.stream_bytes = n_bytes;
  response.stream = [parts](ClientLink& link) {
    for (MixedPart& part : *parts)
      if (!link.write(part.head) || !send_file(part.file, link) || !link.write("\r\n")) return;
    link.write(kMixedEnd);
  };
  return response;
}

}  // namespace hocket
