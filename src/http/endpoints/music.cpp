#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/music_json.h"

namespace hocket {
namespace {

Error invalid(const std::string& message, const char* field) {
  return Error(ErrorCode::kInvalid, message, field);
}

std::string detail_of(const Error& error) {
  const std::size_t colon = error.message.find(": ");
  return colon == std::string::npos ? std::string() : error.message.substr(colon);
}

// The 'request' part as an object, or also as an array of them. Without one: the defaults, unless it must be there.
Result<std::vector<MusicRequest>> read_request_part(const HttpRequest& request, const Api& api, MusicTask task,
                                                    bool must_be, bool many) {
  const MusicRequest defaults = music_defaults(task);
  const BodyPart* part = request.part("request");
  if (!part && must_be) return invalid("Multipart: missing 'request' part", "request");
  if (!part) return std::vector<MusicRequest>{defaults};
  if (part->bytes->size() > api.options.limits.max_body_bytes) {
    Error error =
        invalid(fmt::format("'request' is larger than {} bytes", api.options.limits.max_body_bytes), "request");
    error.reason = "too_large";
    return error;
  }
  TRY_ASSIGN(const std::span<const std::byte> bytes, part->bytes->view());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto parsed = parse_music_requests(text, defaults);
  const bool array =
      text.find_first_not_of(" \t\r\n") != std::string_view::npos && text[text.find_first_not_of(" \t\r\n")] == '[';
  if (!parsed || (array && !many))
    return invalid("Multipart: invalid JSON in 'request' part" + (parsed ? "" : detail_of(parsed.error())), "request");
  return *parsed;
}

Result<std::vector<JobInput>> read_sounds(const HttpRequest& request) {
  std::vector<JobInput> sounds;
  for (const char* name : {"audio", "src_latents", "ref_audio", "ref_latents"}) {
    const BodyPart* part = request.part(name);
    if (!part) continue;
    TRY_ASSIGN(const std::span<const std::byte> bytes, part->bytes->view());
    sounds.push_back({name, bytes});
  }
  return sounds;
}

Result<std::vector<MusicRequest>> read_json(const HttpRequest& request) {
  const auto parsed = parse_music_requests(request.body);
  if (!parsed) return invalid("Invalid JSON" + detail_of(parsed.error()), "");
  return *parsed;
}

Result<HttpResponse> submit(const HttpRequest& request, const Api& api, MusicTask task) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY(music->ready(task));
  MusicSubmission submission;
  submission.task = task;
  submission.owner = job_owner(request, api);
  const bool needs_sound = task == MusicTask::kUnderstand || task == MusicTask::kVae;
  if (needs_sound && !request.multipart)
    return invalid(
        fmt::format("{} requires multipart/form-data", task == MusicTask::kVae ? "VAE endpoint" : "Understand"), "");
  if (request.multipart) {
    TRY_ASSIGN(submission.requests, read_request_part(request, api, task, !needs_sound, !needs_sound));
    TRY_ASSIGN(submission.sounds, read_sounds(request));
  } else {
    TRY_ASSIGN(submission.requests, read_json(request));
  }
  TRY_ASSIGN(const JobStatus job, music->submit(submission));
  HttpResponse response;
  response.body = dump_json(job_json(job));
  return response;
}

HttpResponse respond(const HttpRequest& request, const Api& api, MusicTask task) {
  auto response = submit(request, api, task);
  return response ? *std::move(response) : error_response(response.error());
}

}  // namespace

HttpResponse post_lm(const HttpRequest& request, const Api& api) {
  return respond(request, api, MusicTask::kCompose);
}

HttpResponse post_synth(const HttpRequest& request, const Api& api) {
  return respond(request, api, MusicTask::kSynth);
}

HttpResponse post_understand(const HttpRequest& request, const Api& api) {
  return respond(request, api, MusicTask::kUnderstand);
}

HttpResponse post_vae(const HttpRequest& request, const Api& api) {
  return respond(request, api, MusicTask::kVae);
}

HttpResponse post_props_refresh(const HttpRequest& request, const Api& api) {
  const auto music = music_of(api);
  if (!music) return error_response(music.error());
  if (const auto scanned = (*music)->rescan(); !scanned) return error_response(scanned.error());
  Json json = Json::object();
  add_music_props(json, **music);
  HttpResponse response;
  response.body = dump_json(json, 2);
  return response;
}

}  // namespace hocket
