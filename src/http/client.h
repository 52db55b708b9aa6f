// http/client.h: requests to another server.
//
// Owns     a connection that is kept between requests.
// Threads  one request at a time; stop() from any thread.
// Errors   open(): kInvalid for an address that is none. Requests: kIo when the server cannot be reached or the
//          connection breaks, kCancelled after stop(). A status that tells of a failure is no error here.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hocket {

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;  // empty where the caller took it in pieces
};

class HttpClient {
 public:
  // "http://host[:port]", "https://host[:port]" (checked against the system's certificates) or "unix:/path". api_key
  // "": none is sent.
  static Result<std::unique_ptr<HttpClient>> open(const std::string& url, const std::string& api_key);
  virtual ~HttpClient() = default;

  virtual Result<HttpReply> get(const std::string& path) = 0;
  // A JSON body. Pieces of the answer's body go to on_bytes, which ends the request by returning false, if the answer
  // is a stream of events with status 200; else the body is in the reply.
  virtual Result<HttpReply> post(const std::string& path, const std::string& body,
                                 const std::function<bool(std::string_view)>& on_bytes) = 0;
  // Ends the request that runs, or the next one.
  virtual void stop() = 0;
};

}  // namespace hocket
