// Bodies for music that no honest client sends.
#include "http/music_server.h"

namespace hocket {
namespace {

void expect_error(const RawResponse& response, int status, const std::string& message_part) {
  EXPECT_EQ(response.status, status) << response.body;
  const Json body = TestServer::parse(response.body);
  ASSERT_TRUE(body.contains("error")) << response.body;
  EXPECT_NE(body["error"]["message"].get<std::string>().find(message_part), std::string::npos) << response.body;
  EXPECT_TRUE(body["error"]["type"].is_string());
}

TEST(HostileMusic, Json) {
  MusicServer s;
  for (const std::string path : {"/lm", "/synth"})
    for (const std::string body :
         {"", "{", "null", "1", "\"x\"", "[]", "[1]", R"([{"caption":"x"},2])", "{}x", R"({"caption":NaN})",
          R"({"caption":"x","caption":"y"})", "{\"caption\":\"\xff\"}", R"({"duration":1e999})"})
      expect_error(s.server.call("POST", path, body), 400, "Invalid JSON");
  std::string deep(5000, '[');
  expect_error(s.server.call("POST", "/lm", deep), 400, "Invalid JSON");
  for (const std::string path : {"/understand", "/vae"})
    expect_error(s.server.call("POST", path, "{}"), 400, "requires multipart/form-data");
  EXPECT_TRUE(s.music.seen().empty());
  // Values of a wrong type are as if they were not there: the format's own rule.
  s.done(s.server.call("POST", "/synth", R"({"caption":"x","duration":"long","bpm":null,"unknown":1})"));
  EXPECT_EQ(s.music.seen()[0].requests[0].duration, 0);
}

TEST(HostileMusic, RequestParts) {
  MusicServer s;
  expect_error(s.form("/synth", {{"audio", "x", "a.wav"}}), 400, "Multipart: missing 'request' part");
  for (const std::string request : {"", "{", "[1]", "7", "{\"caption\":\"\xc3\"}"}) {
    expect_error(s.form("/synth", {{"request", request, ""}}), 400, "Multipart: invalid JSON in 'request' part");
    expect_error(s.form("/vae", {{"request", request, ""}, {"audio", "x", ""}}), 400,
                 "Multipart: invalid JSON in 'request' part");
  }
  expect_error(s.form("/vae", {{"request", "[{}]", ""}}), 400, "Multipart: invalid JSON in 'request' part");
  expect_error(s.form("/synth", {{"request", "{}", ""}, {"request", "{}", ""}}), 400, "two parts \"request\"");
  expect_error(s.form("/synth", {{"", "{}", ""}}), 400, "no name");
  std::vector<FormPart> many;
  for (int i = 0; i < 17; ++i) many.push_back({"p" + std::to_string(i), "x", ""});
  expect_error(s.form("/synth", many), 400, "more than 16 parts");
  EXPECT_TRUE(s.music.seen().empty());
}

TEST(HostileMusic, Framing) {
  MusicServer s;
  const std::string good = form_body({{"request", R"({"caption":"x"})", ""}});
  for (const std::string& bad : {
           std::string(),
           std::string("x"),
           good.substr(0, good.size() - 4),
           good.substr(0, good.size() / 2),
           "--B0undary\r\n" + std::string(20'000, 'h') + "\r\n\r\nx\r\n--B0undary--\r\n",
           std::string("--B0undary\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B0undary--\r\n"),
           std::string("--B0undary\r\n\r\nx\r\n--B0undary--\r\n"),
           std::string("--B0undary\r\nno header\r\n\r\nx\r\n--B0undary--\r\n"),
           std::string("--B0undary\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--B0undaryzz"),
       }) {
    const RawResponse response = s.form("/synth", bad);
    EXPECT_EQ(response.status, 400) << bad.substr(0, 200);
    EXPECT_TRUE(TestServer::parse(response.body).contains("error"));
  }
  for (const std::string type : {"multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=x",
                                 "Multipart/Form-Data; boundary=B0undary", "text/plain"}) {
    const int status = s.form("/synth", good, "", type).status;
    EXPECT_TRUE(status == 400 || status == 415) << type << " " << status;
  }
  EXPECT_EQ(s.form("/lm", good).status, 415);
  EXPECT_EQ(s.form("/job?id=x&cancel=1", good).status, 415);
  EXPECT_EQ(s.form("/v1/chat/completions", good).status, 415);
  EXPECT_EQ(s.form("/synth", good, "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(s.form("/synth", good, "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(s.form("/synth", good, "Origin: null\r\n").status, 403);
  EXPECT_EQ(s.form("/synth", good, "Origin: http://localhost\r\n").status, 200);
  EXPECT_EQ(s.music.seen().size(), 1U);
}

TEST(HostileMusic, Sizes) {
  ServerOptions options;
  options.limits.max_body_bytes = 1000;
  options.limits.max_upload_bytes = 5000;
  MusicServer s(options);
  const std::string json = R"({"caption":")" + std::string(1500, 'x') + "\"}";
  expect_error(s.server.call("POST", "/synth", json), 413, "larger than 1000");
  expect_error(s.form("/synth", {{"request", json, ""}}), 413, "larger than 1000");
  EXPECT_EQ(s.form("/synth", {{"request", "{}", ""}, {"audio", std::string(4000, 'x'), ""}}).status, 200);
  expect_error(s.form("/synth", {{"request", "{}", ""}, {"audio", std::string(6000, 'x'), ""}}), 413,
               "larger than 5000");
  // Without a length it is counted as it comes.
  std::string chunked =
      "POST /synth HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=B0undary\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body = form_body({{"audio", std::string(6000, 'x'), ""}});
  for (std::size_t at = 0; at < body.size(); at += 256) {
    const std::string piece = body.substr(at, 256);
    char size[16];
    std::snprintf(size, sizeof(size), "%zx\r\n", piece.size());
    chunked += size + piece + "\r\n";
  }
  chunked += "0\r\n\r\n";
  expect_error(s.server.raw(chunked), 413, "larger than 5000");
  // Cut short: the client says more than it sends.
  RawClient client(s.server.port());
  client.send(
      "POST /synth HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=B0undary\r\n"
      "Content-Length: 900\r\n\r\n--B0undary\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{");
  client.shut_down_sending();
  EXPECT_EQ(client.response().status, 400);
  EXPECT_EQ(s.music.seen().size(), 1U);
}

TEST(HostileMusic, AudioGenerations) {
  MusicServer s;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"prompt":1})", "prompt"},
      {R"({"prompt":"x","duration":601})", "duration"},
      {R"({"prompt":"x","duration":"1"})", "duration"},
      {R"({"prompt":"x","n":0})", "n"},
      {R"({"prompt":"x","n":10})", "n"},
      {R"({"prompt":"x","n":2})", "n"},
      {R"({"prompt":"x","seed":-1})", "seed"},
      {R"({"prompt":"x","seed":4294967296})", "seed"},
      {R"({"prompt":"x","response_format":"opus"})", "response_format"},
      {R"({"prompt":"x","output":"file"})", "output"},
      {R"({"prompt":"x","music":[]})", "music"},
      {R"({"prompt":"x","model":{}})", "model"},
  };
  for (const auto& [body, param] : cases) {
    const RawResponse response = s.server.call("POST", "/v1/audio/generations", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(TestServer::parse(response.body)["error"]["param"], param) << response.body;
  }
  EXPECT_EQ(s.server.call("POST", "/v1/audio/generations", "[]").status, 400);
  EXPECT_EQ(s.server.call("POST", "/v1/audio/generations", "").status, 400);
  EXPECT_EQ(
      s.server.call("POST", "/v1/audio/generations", R"({"prompt":"x","tempo":1})", "X-Hocket-Strict: true\r\n").status,
      400);
  EXPECT_TRUE(s.music.seen().empty());
}

}  // namespace
}  // namespace hocket
