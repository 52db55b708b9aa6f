#include "http/body_intake.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/error_reply.h"

namespace hocket {

bool BodyIntake::refuse(HttpResponse response) {
  fault_ = std::move(response);
  return false;
}

bool BodyIntake::count(std::size_t n_bytes) {
  if (n_bytes > most_ - std::min(most_, n_bytes_)) return refuse(body_too_large(most_));
  n_bytes_ += n_bytes;
  return true;
}

bool BodyIntake::take(std::string_view bytes) {
  if (!count(bytes.size())) return false;
  request_.body += bytes;
  return true;
}

bool BodyIntake::begin_part(std::string_view name, std::string_view filename, std::string_view content_type) {
  if (name.empty()) return refuse(protocol_error(400, "a part of the body has no name", "bad_request"));
  if (request_.parts.size() >= limits_.max_parts)
    return refuse(
        protocol_error(400, fmt::format("the body has more than {} parts", limits_.max_parts), "bad_request"));
  if (request_.part(name))
    return refuse(protocol_error(400, fmt::format("the body has two parts \"{}\"", name.substr(0, 100)), "bad_request",
                                 name.substr(0, 100)));
  request_.parts.push_back(
      {std::string(name), std::string(filename), std::string(content_type), std::make_shared<Spool>()});
  return true;
}

bool BodyIntake::take_of_part(std::string_view bytes) {
  if (!count(bytes.size())) return false;
  const auto taken = request_.parts.back().bytes->append(bytes);
  return taken.ok() || refuse(error_response(taken.error()));
}

}  // namespace hocket
