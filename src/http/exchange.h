// http/exchange.h: one request and its response, without the HTTP library.
//
// A handler gets an HttpRequest whose head and body are complete and returns an HttpResponse. A response with `stream`
// set is sent head first; the function then writes the body piece by piece.
//
// Threads  a request and its response belong to the thread of their connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "http/spool.h"

namespace hocket {

// kHalfClosed: the client will send no more, and may or may not still read: only sending to it shows which.
enum class PeerState { kOpen, kHalfClosed, kGone };

// The client's end of a connection, as a handler may use it.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  virtual PeerState peer() = 0;
  // Sends something that every client ignores, so that a client which closed its socket answers with a reset.
  virtual void probe() = 0;
  // The next piece of a streamed body; false when the client is gone or took nothing for too long.
  virtual bool write(std::string_view bytes) = 0;
  // No further request on this connection.
  virtual void close_after() = 0;
};

// Asks between two steps of work whether the client still waits.
class DisconnectWatch {
 public:
  explicit DisconnectWatch(ClientLink& link) : link_(link) {}
  bool gone();

 private:
  ClientLink& link_;
  Clock::time_point next_probe_{};
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// A part of a multipart/form-data body.
struct BodyPart {
  std::string name, filename, content_type;
  std::shared_ptr<Spool> bytes;
};

struct HttpRequest {
  std::string method;
  std::string path;  // percent-decoded, without the query
  HeaderList query;  // decoded names and values
  HeaderList headers;
  std::string body;  // empty when it came in parts
  bool multipart = false;
  std::vector<BodyPart> parts;
  std::string request_id;  // the client's X-Request-Id if it is acceptable, else random
  ClientLink* link = nullptr;

  // The first header of that name (any case); "" when there is none.
  std::string_view header(std::string_view name) const;
  bool has_header(std::string_view name) const;
  // The first of that name; nullptr when there is none.
  const std::string* query_value(std::string_view name) const;
  const BodyPart* part(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  HeaderList headers;
  std::string content_type = "application/json";
  std::string body;
  std::function<void(ClientLink&)> stream;
  std::optional<std::size_t> stream_bytes;  // how many the stream will write, where that is known
};

bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace hocket
