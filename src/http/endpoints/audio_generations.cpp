#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/base64.h"
#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/music_json.h"

namespace hocket {
namespace {

// How long a song may be awaited before the client is looked at.
constexpr std::chrono::milliseconds kLookInterval{100};
constexpr std::size_t kMostTextBytes = 64 * 1024;

enum class Output { kBinary, kBase64, kUrl };

struct AudioRequest {
  MusicRequest song;
  Output output = Output::kBinary;
};

Result<AudioRequest> read(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  AudioRequest audio;
  if (const Json* music = fields.object("music")) {
    TRY_ASSIGN(audio.song, parse_music_request(dump_json(*music)));
  }
  MusicRequest& song = audio.song;
  if (auto model = fields.string("model", 256)) song.synth_model = *std::move(model);
  if (auto prompt = fields.string("prompt", kMostTextBytes)) song.caption = *std::move(prompt);
  if (auto input = fields.string("input", kMostTextBytes)) song.caption = *std::move(input);
  if (auto lyrics = fields.string("lyrics", kMostTextBytes)) song.lyrics = *std::move(lyrics);
  if (const auto duration = fields.real("duration", 0, 600)) song.duration = *duration;
  if (const auto seed = fields.integer("seed", 0, 4'294'967'295)) song.seed = song.lm_seed = *seed;
  if (const auto n = fields.small_integer("n", 1, 9)) song.synth_batch_size = *n;
  const auto format = fields.one_of("response_format", {"mp3", "wav", "wav16", "wav24", "wav32", "flac"});
  if (format) song.output_format = *format == "wav" ? "wav16" : *format;
  const auto output = fields.one_of("output", {"binary", "b64_json", "url"});
  if (output)
    audio.output = *output == "url" ? Output::kUrl : *output == "b64_json" ? Output::kBase64 : Output::kBinary;
  fields.string("user", 256);
  if (audio.output == Output::kBinary && song.synth_batch_size != 1)
    fields.fail("n", "more than one track comes as output \"b64_json\" or \"url\"");
  TRY(finish_fields(fields, request, api.options));
  return audio;
}

bool asks_for_a_job(const HttpRequest& request) {
  std::string prefer(request.header("Prefer"));
  std::transform(prefer.begin(), prefer.end(), prefer.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return prefer.find("respond-async") != std::string::npos;
}

Result<JobStatus> wait_for(MusicService& music, const JobStatus& job, const std::string& owner, ClientLink& link) {
  DisconnectWatch watch(link);
  JobStatus status = job;
  while (!has_ended(status.record.state)) {
    if (watch.gone()) {
      TRY(music.cancel(status.record.id, owner));
      return Error(ErrorCode::kCancelled, "the client closed the connection");
    }
    TRY_ASSIGN(status, music.wait(status.record.id, owner, kLookInterval));
  }
  if (status.record.error) return *status.record.error;
  if (status.record.state != JobState::kDone) return Error(ErrorCode::kCancelled, "the job was cancelled");
  return status;
}

bool is_sound(const JobFile& file) {
  return file.media_type.starts_with("audio/");
}

Result<HttpResponse> deliver(MusicService& music, const JobStatus& job, const std::string& owner, Output output) {
  TRY_ASSIGN(std::vector<BlobFile> files, music.results(job.record.id, owner));
  Json data = Json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const JobFile& file = files[i].file();
    if (!is_sound(file)) continue;
    if (output == Output::kBinary) {
      HttpResponse response = file_response(std::move(files[i]), true);
      response.headers.emplace_back("X-Hocket-Job", job.record.id);
      return response;
    }
    Json entry = Json::object({{"media_type", file.media_type}});
    if (output == Output::kUrl) {
      entry["url"] = fmt::format("/v1/jobs/{}/files/{}", job.record.id, i);
    } else {
      TRY_ASSIGN(const std::vector<std::byte> bytes, files[i].read_rest());
      entry["b64_json"] = to_base64(bytes);
    }
    data.push_back(std::move(entry));
  }
  if (data.empty()) return Error(ErrorCode::kInternal, "the job made no sound");
  Json reply = Json::object();
  reply["id"] = job.record.id;
  reply["created"] = job.record.created_ms / 1000;
  reply["data"] = std::move(data);
  HttpResponse response;
  response.body = dump_json(reply);
  return response;
}

Result<HttpResponse> answer(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(MusicService* const music, music_of(api));
  TRY(music->ready(MusicTask::kSong));
  TRY_ASSIGN(AudioRequest audio, read(request, api));
  MusicSubmission submission;
  submission.task = MusicTask::kSong;
  submission.owner = job_owner(request, api);
  submission.requests.push_back(std::move(audio.song));
  TRY_ASSIGN(const JobStatus job, music->submit(submission));
  if (asks_for_a_job(request)) {
    HttpResponse response;
    response.status = 202;
    response.headers = {{"Location", "/v1/jobs/" + job.record.id}, {"Preference-Applied", "respond-async"}};
    response.body = dump_json(job_json(job));
    return response;
  }
  TRY_ASSIGN(const JobStatus done, wait_for(*music, job, submission.owner, *request.link));
  return deliver(*music, done, submission.owner, audio.output);
}

}  // namespace

HttpResponse post_audio_generations(const HttpRequest& request, const Api& api) {
  auto response = answer(request, api);
  return response ? *std::move(response) : error_response(response.error());
}

}  // namespace hocket
