// Music over HTTP: what clients of acestep.cpp and of the OpenAI API see.
#include "base/log.h"
#include "http/music_server.h"

namespace hocket {
namespace {

const std::string kSong = R"({"caption":"calm piano","seed":7})";

Json error_of(const RawResponse& response) {
  return TestServer::parse(response.body)["error"];
}

TEST(Music, WordsBecomeAJobAndAJobRequests) {
  MusicServer s;
  s.music.holding = true;
  const RawResponse response = s.server.call("POST", "/lm", kSong);
  ASSERT_EQ(response.status, 200);
  const std::string id = TestServer::parse(response.body)["id"];
  EXPECT_EQ(id.size(), 32U);
  ASSERT_TRUE(
      TestServer::eventually([&] { return s.job(id)["state"] == "running" && s.job(id).contains("progress"); }));
  const Json job = s.job(id);
  EXPECT_EQ(job["status"], "running");
  EXPECT_EQ(job["kind"], "lm");
  EXPECT_EQ(job["progress"]["stage"], "diffusion");
  EXPECT_EQ(job["progress"]["step"], 3);
  EXPECT_EQ(job["progress"]["steps"], 8);
  const Json waiting = s.server.json("POST", "/lm", "[" + kSong + "," + kSong + "]");
  EXPECT_EQ(waiting["status"], "running");
  EXPECT_EQ(waiting["state"], "queued");
  EXPECT_EQ(waiting["position"], 1);
  const RawResponse early = s.server.call("GET", "/job?id=" + id + "&result=1");
  EXPECT_EQ(early.status, 404);
  EXPECT_EQ(error_of(early)["message"], "Result not ready");
  s.music.release();
  ASSERT_TRUE(TestServer::eventually([&] { return s.job(waiting["id"])["status"] == "done"; }));
  const RawResponse result = s.server.call("GET", "/job?id=" + waiting["id"].get<std::string>() + "&result=1");
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.header("Content-Type"), "application/json");
  const Json requests = TestServer::parse(result.body);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1]["caption"], "calm piano");
  EXPECT_EQ(requests[1]["seed"], 7);
  const Json done = s.job(id);
  EXPECT_GE(done["finished"].get<double>(), done["created"].get<double>());
  EXPECT_EQ(done["files"][0]["name"], "requests.json");
}

TEST(Music, MetricsCountJobs) {
  MusicServer s;
  s.done(s.server.call("POST", "/lm", kSong));
  s.music.holding = true;
  const std::string held = s.server.json("POST", "/synth", kSong)["id"];
  s.server.json("POST", "/synth", kSong);
  ASSERT_TRUE(TestServer::eventually([&] { return s.job(held)["state"] == "running"; }));
  const std::string metrics = s.server.call("GET", "/metrics").body;
  for (const char* line :
       {"hocket_jobs_queued 1\n", "hocket_jobs_running 1\n", "hocket_jobs_kept 1\n",
        "hocket_jobs_total{kind=\"lm\",state=\"done\"} 1\n", "hocket_jobs_total{kind=\"lm\",state=\"failed\"} 0\n",
        "hocket_job_bytes{files=\"inputs\"} 0\n", "hocket_job_run_seconds_total{kind=\"lm\"} "})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
}

TEST(Music, TracksComeInOneMixedBody) {
  MusicServer s;
  const std::string id = s.done(s.server.call("POST", "/synth", R"({"caption":"x","synth_batch_size":2})"));
  const RawResponse result = s.server.call("GET", "/job?id=" + id + "&result=1");
  EXPECT_EQ(result.header("Content-Type"), "multipart/mixed; boundary=ace-batch-boundary");
  std::string expected;
  for (const std::string n : {"0", "1"})
    expected += "--ace-batch-boundary\r\nContent-Type: audio/mpeg\r\n\r\nMP3 " + n +
                "\r\n--ace-batch-boundary\r\nContent-Type: application/octet-stream\r\n"
                "Content-Disposition: form-data; name=\"latent\"\r\n\r\n" +
                std::string(256, 'L') + "\r\n";
  expected += "--ace-batch-boundary--\r\n";
  EXPECT_EQ(result.body, expected);
  EXPECT_EQ(result.header("Content-Length"), std::to_string(expected.size()));
  const RawResponse again = s.server.call("GET", "/job?id=" + id + "&result=1");
  EXPECT_EQ(again.body, expected);
  const RawResponse head = s.server.call("HEAD", "/job?id=" + id + "&result=1");
  EXPECT_EQ(head.header("Content-Length"), std::to_string(expected.size()));
}

TEST(Music, SoundsComeInParts) {
  MusicServer s;
  const std::string large(3'000'000, 'a');  // more than stays in memory
  s.done(s.form("/synth", {{"request", kSong, "request.json"},
                           {"audio", large, "song.wav"},
                           {"ref_latents", std::string(256, '\0'), "x"},
                           {"note", "is not read", ""}}));
  s.done(s.form("/synth", {{"request", "[" + kSong + "]", ""}}));
  const std::string heard = s.done(s.form("/understand", {{"audio", "RIFF--B0undarx", "song.wav"}}));
  s.done(
      s.form("/vae", {{"src_latents", std::string(512, 'x'), "x"}, {"request", R"({"output_format":"wav24"})", ""}}));
  const auto seen = s.music.seen();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].task, MusicTask::kSynth);
  EXPECT_EQ(seen[0].requests[0].caption, "calm piano");
  ASSERT_EQ(seen[0].sounds.size(), 2U);
  EXPECT_EQ(seen[0].sounds[0].first, "audio");
  EXPECT_TRUE(seen[0].sounds[0].second == large);
  EXPECT_EQ(seen[0].sounds[1].second, std::string(256, '\0'));
  EXPECT_EQ(seen[2].task, MusicTask::kUnderstand);
  EXPECT_EQ(seen[2].sounds[0].second, "RIFF--B0undarx");
  EXPECT_EQ(seen[2].requests[0].lm_temperature, 0.3f);
  EXPECT_EQ(seen[3].task, MusicTask::kVae);
  EXPECT_EQ(seen[3].requests[0].output_format, "wav24");
  const RawResponse result = s.server.call("GET", "/job?id=" + heard + "&result=1");
  EXPECT_TRUE(result.body.starts_with("--ace-batch-boundary\r\nContent-Type: application/json\r\n\r\n["))
      << result.body;
}

TEST(Music, CancelsAndForgets) {
  MusicServer s;
  s.music.holding = true;
  const std::string first = s.server.json("POST", "/lm", kSong)["id"];
  const std::string second = s.server.json("POST", "/lm", kSong)["id"];
  // A page of the server itself sends neither type nor body.
  const RawResponse cancelled = s.bare("/job?id=" + first + "&cancel=1", "Origin: http://localhost\r\n");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(TestServer::parse(cancelled.body)["status"], "cancelled");
  EXPECT_TRUE(TestServer::eventually([&] { return s.job(first)["status"] == "cancelled"; }));
  EXPECT_EQ(s.server.call("GET", "/job?id=" + first + "&result=1").status, 404);
  EXPECT_EQ(s.bare("/job?id=" + second + "&cancel=1", "Origin: http://evil.example\r\n").status, 403);
  s.music.release();
  ASSERT_TRUE(TestServer::eventually([&] { return s.job(second)["status"] == "done"; }));
  EXPECT_EQ(TestServer::parse(s.bare("/job?id=" + second + "&cancel=1").body)["status"], "done");
  EXPECT_EQ(s.server.json("GET", "/v1/jobs")["data"].size(), 2U);
  EXPECT_EQ(s.server.json("DELETE", "/v1/jobs/" + second)["deleted"], true);
  EXPECT_EQ(s.server.call("GET", "/job?id=" + second).status, 404);
  EXPECT_EQ(s.server.call("DELETE", "/v1/jobs/" + second).status, 404);
}

TEST(Music, JobsThatAreNotThere) {
  MusicServer s;
  for (const std::string path : {"/job", "/job?id=", "/job?ID=x"}) {
    const RawResponse response = s.server.call("GET", path);
    EXPECT_EQ(response.status, 400) << path;
    EXPECT_EQ(error_of(response)["message"], "Missing id parameter");
    EXPECT_EQ(s.bare(path).status, 400);
  }
  for (const std::string id : {"x", "0123456789abcdef0123456789abcdef", "..%2F..%2Fetc%2Fpasswd", "%00", "%FF"}) {
    const RawResponse response = s.server.call("GET", "/job?id=" + id);
    EXPECT_EQ(response.status, 404) << id;
    EXPECT_EQ(error_of(response)["message"], "Job not found");
    EXPECT_EQ(s.bare("/job?cancel=1&id=" + id).status, 404);
    EXPECT_EQ(s.server.call("GET", "/v1/jobs/" + id).status, 404);
    EXPECT_EQ(s.server.call("GET", "/v1/jobs/" + id + "/files/0").status, 404);
    EXPECT_EQ(s.server.call("DELETE", "/v1/jobs/" + id).status, 404);
  }
  const std::string id = s.done(s.server.call("POST", "/lm", kSong));
  EXPECT_EQ(s.bare("/job?id=" + id).status, 400);
  EXPECT_EQ(s.bare("/job?id=" + id + "&cancel=2").status, 400);
  for (const std::string rest :
       {"/files/1", "/files/", "/files/x", "/files/-1", "/files/0x", "/files/99999999999999999999", "/other"})
    EXPECT_EQ(s.server.call("GET", "/v1/jobs/" + id + rest).status, 404) << rest;
  const RawResponse file = s.server.call("GET", "/v1/jobs/" + id + "/files/0");
  EXPECT_EQ(file.status, 200);
  EXPECT_EQ(file.header("Content-Disposition"), "attachment; filename=\"requests.json\"");
}

TEST(Music, FailuresSayWhy) {
  MusicServer s;
  s.music.runner = [](const RunningJob&) -> Result<std::vector<JobOutput>> {
    return Error(ErrorCode::kOutOfMemory, "the VAE needs 7 GiB", "vae_chunk");
  };
  const Json job = s.job(s.done(s.server.call("POST", "/synth", kSong)));
  EXPECT_EQ(job["status"], "failed");
  EXPECT_EQ(job["error"], "the VAE needs 7 GiB");
  EXPECT_EQ(job["error_details"]["code"], "out_of_memory");
  EXPECT_EQ(job["error_details"]["param"], "vae_chunk");
  const RawResponse sync = s.server.call("POST", "/v1/audio/generations", R"({"prompt":"x"})");
  EXPECT_EQ(sync.status, 503);
  EXPECT_EQ(error_of(sync)["message"], "the VAE needs 7 GiB");
}

TEST(Music, AFullQueueAsksToComeBack) {
  JobLimits limits;
  limits.max_pending = 1;
  MusicServer s({}, limits);
  s.music.holding = true;
  const std::string first = s.server.json("POST", "/lm", kSong)["id"];
  ASSERT_TRUE(TestServer::eventually([&] { return s.job(first)["state"] == "running"; }));
  EXPECT_EQ(s.server.call("POST", "/lm", kSong).status, 200);
  const RawResponse full = s.server.call("POST", "/lm", kSong);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.header("Retry-After"), "1");
  EXPECT_EQ(error_of(full)["code"], "rate_limit_exceeded");
}

TEST(Music, MissingModelsAreNamed) {
  MusicServer s;
  s.music.not_ready = Error(ErrorCode::kUnsupported, "No synth models in registry; missing: vae", "vae");
  s.music.not_ready->reason = "models_missing";
  for (const std::string path : {"/lm", "/synth", "/understand", "/vae", "/v1/audio/generations"}) {
    const RawResponse response = s.server.call("POST", path, "no JSON");  // the first thing that is looked at
    EXPECT_EQ(response.status, 501) << path;
    EXPECT_EQ(error_of(response)["code"], "models_missing");
    EXPECT_EQ(error_of(response)["param"], "vae");
  }
  TestServer silent;
  for (const std::string path : {"/lm", "/synth", "/understand", "/vae", "/v1/audio/generations", "/props/refresh"})
    EXPECT_EQ(silent.call("POST", path, kSong).status, 501) << path;
  EXPECT_EQ(silent.call("GET", "/job?id=x").status, 501);
  EXPECT_EQ(silent.call("GET", "/v1/jobs").status, 501);
}

TEST(Music, PropsServeBothKindsOfClients) {
  MusicServer s;
  const Json props = s.server.json("GET", "/props");
  EXPECT_TRUE(props.contains("limits"));
  EXPECT_EQ(props["models"]["dit"], Json::array({"base.gguf", "turbo.gguf"}));
  EXPECT_EQ(props["models"]["embedding"], Json::array({"text.gguf"}));
  EXPECT_EQ(props["adapters"], Json::array({"folk.safetensors"}));
  EXPECT_EQ(props["cli"]["max_batch"], 4);
  EXPECT_EQ(props["presets"]["turbo"]["inference_steps"], 8);
  EXPECT_EQ(props["default"]["stork_substeps"], 10);
  EXPECT_EQ(props["default"].size(), 46U);  // the 44 of other tools, lm_exact_duration and lm_force_think
  EXPECT_EQ(props["music"]["synth"], true);
  EXPECT_EQ(s.bare("/props/refresh").status, 200);
  EXPECT_EQ(s.music.n_scans, 1);
  const Json models = s.server.json("GET", "/v1/models")["data"];
  EXPECT_EQ(models[0]["id"], "org/fake:1b");
  EXPECT_EQ(models[1]["meta"]["kind"], "music");
  EXPECT_FALSE(TestServer().json("GET", "/props").contains("models"));
}

TEST(Music, AServerWithoutALanguageModelStillMakesMusic) {
  FakeMusicService music;
  const auto host = ModelHost::none();
  ServerOptions options;
  options.port = 0;
  const auto server = Server::start(options, *host, &music);
  ASSERT_TRUE(server.ok());
  const auto call = [&](const std::string& method, const std::string& path, const std::string& body = "") {
    RawClient client((*server)->port());
    client.send(TestServer::request(method, path, body));
    return client.response();
  };
  EXPECT_EQ(call("GET", "/health").status, 200);
  EXPECT_EQ(call("GET", "/metrics").status, 200);
  EXPECT_EQ(TestServer::parse(call("GET", "/props").body)["models"]["lm"], Json::array({"lm.gguf"}));
  EXPECT_EQ(TestServer::parse(call("GET", "/v1/models").body)["data"].size(), 2U);
  const RawResponse chat = call("POST", "/v1/chat/completions", chat_body());
  EXPECT_EQ(chat.status, 404);
  EXPECT_EQ(error_of(chat)["code"], "model_not_found");
  EXPECT_EQ(call("POST", "/lm", kSong).status, 200);
}

TEST(Music, KeysSeparateJobs) {
  ServerOptions options;
  options.api_keys = {"ada", "bob"};
  MusicServer s(options);
  const auto as = [&](const std::string& key, const std::string& method, const std::string& path,
                      const std::string& body = "") {
    return s.server.call(method, path, body, "Authorization: Bearer " + key + "\r\n");
  };
  EXPECT_EQ(s.server.call("POST", "/lm", kSong).status, 401);
  EXPECT_EQ(s.server.call("GET", "/job?id=x").status, 401);
  const std::string id = TestServer::parse(as("ada", "POST", "/lm", kSong).body)["id"];
  EXPECT_EQ(as("ada", "GET", "/job?id=" + id).status, 200);
  EXPECT_EQ(as("bob", "GET", "/job?id=" + id).status, 404);
  EXPECT_EQ(as("bob", "DELETE", "/v1/jobs/" + id).status, 404);
  EXPECT_TRUE(TestServer::parse(as("bob", "GET", "/v1/jobs").body)["data"].empty());
  EXPECT_EQ(s.music.seen()[0].owner.find("ada"), std::string::npos);
}

TEST(Logs, TellWhatWasAndWhatComes) {
  ServerOptions options;
  options.api_keys = {"key"};
  TestServer server(options);
  EXPECT_EQ(server.call("GET", "/logs").status, 401);
  log_info("a line before");
  RawClient client(server.port());
  client.send(TestServer::request("GET", "/logs", "", "x-api-key: key\r\n"));
  EXPECT_TRUE(client.receive_until("a line before\n\n"));
  EXPECT_NE(client.input().find("Content-Type: text/event-stream"), std::string::npos);
  log_info("a line\nafter");
  EXPECT_TRUE(client.receive_until("after\n\n"));
  EXPECT_EQ(client.input().find("a line\nafter"), std::string::npos);
}

TEST(AudioGenerations, AnswersWithSound) {
  MusicServer s;
  const RawResponse sound = s.server.call(
      "POST", "/v1/audio/generations",
      R"({"model":"turbo.gguf","prompt":"rain","lyrics":"la","duration":12.5,"seed":3,"response_format":"wav",)"
      R"("music":{"bpm":90,"seed":9}})");
  EXPECT_EQ(sound.status, 200);
  EXPECT_EQ(sound.header("Content-Type"), "audio/mpeg");
  EXPECT_EQ(sound.body, "MP3 0");
  const auto seen = s.music.seen();
  EXPECT_EQ(seen[0].task, MusicTask::kSong);
  const MusicRequest& song = seen[0].requests[0];
  EXPECT_EQ(song.caption, "rain");
  EXPECT_EQ(song.synth_model, "turbo.gguf");
  EXPECT_EQ(song.duration, 12.5f);
  EXPECT_EQ(song.bpm, 90);
  EXPECT_EQ(song.seed, 3);  // the named field wins
  EXPECT_EQ(song.output_format, "wav16");

  const Json encoded = s.server.json("POST", "/v1/audio/generations", R"({"prompt":"x","n":2,"output":"b64_json"})");
  ASSERT_EQ(encoded["data"].size(), 2U);
  EXPECT_EQ(encoded["data"][1]["b64_json"], "TVAzIDE=");
  const Json linked = s.server.json("POST", "/v1/audio/generations", R"({"input":"x","output":"url"})");
  EXPECT_EQ(s.server.call("GET", linked["data"][0]["url"]).body, "MP3 0");
}

TEST(AudioGenerations, AnswersWithAJobToThoseWhoPreferIt) {
  MusicServer s;
  s.music.holding = true;
  const RawResponse accepted =
      s.server.call("POST", "/v1/audio/generations", R"({"prompt":"x"})", "Prefer: Respond-Async, wait=5\r\n");
  EXPECT_EQ(accepted.status, 202);
  const std::string id = TestServer::parse(accepted.body)["id"];
  EXPECT_EQ(accepted.header("Location"), "/v1/jobs/" + id);
  EXPECT_EQ(s.server.json("GET", "/v1/jobs/" + id)["kind"], "song");
}

TEST(AudioGenerations, AClientThatLeavesCancelsItsSong) {
  MusicServer s;
  s.music.holding = true;
  {
    RawClient client(s.server.port());
    client.send(TestServer::request("POST", "/v1/audio/generations", R"({"prompt":"x"})"));
    ASSERT_TRUE(TestServer::eventually([&] { return s.music.jobs("").size() == 1; }));
  }
  EXPECT_TRUE(TestServer::eventually([&] { return s.music.jobs("")[0].record.state == JobState::kCancelled; }));
}

TEST(Music, AStopEndsWaitingClientsAndKeepsTheirServer) {
  MusicServer s;
  s.music.holding = true;
  RawClient client(s.server.port());
  client.send(TestServer::request("POST", "/v1/audio/generations", R"({"prompt":"x"})"));
  ASSERT_TRUE(TestServer::eventually([&] { return s.music.jobs("").size() == 1; }));
  s.server.server->stop(std::chrono::milliseconds(0));
  EXPECT_TRUE(client.closed_soon());
  EXPECT_EQ(s.server.server->n_connections(), 0U);
}

}  // namespace
}  // namespace hocket
