// tests/http/music_server.h: a real server over fakes of chat and music, and bodies in parts.
#pragma once

#include "http/test_server.h"
#include "support/fake_music_service.h"

namespace hocket {

struct FormPart {
  std::string name, content, filename;
};

inline std::string form_body(const std::vector<FormPart>& parts, const std::string& boundary = "B0undary") {
  std::string body;
  for (const FormPart& part : parts) {
    body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + part.name + "\"";
    if (!part.filename.empty()) body += "; filename=\"" + part.filename + "\"";
    body += "\r\n\r\n" + part.content + "\r\n";
  }
  return body + "--" + boundary + "--\r\n";
}

class MusicServer {
 public:
  explicit MusicServer(ServerOptions options = {}, const JobLimits& limits = {})
      : music(limits), server(std::move(options), std::make_shared<FakeChatService>(), &music) {}
  ~MusicServer() { music.release(); }

  RawResponse form(const std::string& path, const std::string& body, const std::string& headers = "",
                   const std::string& type = "multipart/form-data; boundary=B0undary") const {
    return server.raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "Content-Type: " + type +
                      "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  RawResponse form(const std::string& path, const std::vector<FormPart>& parts) const {
    return form(path, form_body(parts));
  }
  // A POST without body or type, as a browser's fetch() sends it.
  RawResponse bare(const std::string& path, const std::string& headers = "") const {
    return server.raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "Content-Length: 0\r\n\r\n");
  }
  Json job(const std::string& id) const { return server.json("GET", "/job?id=" + id); }
  // Submits, and waits for the end.
  std::string done(const RawResponse& response) const {
    EXPECT_EQ(response.status, 200) << response.body;
    const Json body = TestServer::parse(response.body);
    const std::string id = body.value("id", "");
    EXPECT_TRUE(TestServer::eventually([&] { return job(id).value("status", "") != "running"; }));
    return id;
  }

  FakeMusicService music;
  TestServer server;
};

}  // namespace hocket
