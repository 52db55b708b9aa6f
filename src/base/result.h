// base/result.h: how functions report failure.
//
// A function that can fail because of its input (a request, a file, bytes from a peer, the system) returns Result<T>: a
// value, or an Error with a code, a message for people and the field, key or tensor it is about. CHECK (base/check.h)
// is for our own bugs only.
//
//   Result<int> port = parse_port(text);
//   if (!port) return port.error();
//
//   TRY_ASSIGN(int port, parse_port(text));   // the same in one line
//   TRY(socket.bind(port));                   // for Result<void>
//
// Threads  values; no shared state.
// Cost     success of Result<void> is an empty optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace hocket {

enum class ErrorCode {
  kInvalid,      // the caller sent something wrong; `param` names the field
  kNotFound,     // no such model, file, session, request
  kUnsupported,  // understood, but this build or model cannot do it
  kBadModel,     // a model file is damaged or inconsistent; `param` names the key or tensor
  kOutOfMemory,
  kBusy,       // a queue or budget is full; try again later
  kCancelled,  // by the client, or by shutdown
  kTimeout,
  kIo,        // the operating system refused a file or socket
  kPeer,      // another machine broke the protocol
  kInternal,  // our bug, or a third-party library threw
};

// "kInvalid" → "invalid", for logs.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string param;   // field, metadata key, tensor, path: what the error is about; may be empty
  std::string reason;  // a fixed word that programs may branch on, such as "context_length_exceeded"; may be empty
  std::vector<std::pair<std::string, int64_t>> numbers;  // what the message counts, such as {"n_ctx", 4096}

  Error() = default;
  Error(ErrorCode c, std::string m, std::string p = {}) : code(c), message(std::move(m)), param(std::move(p)) {}
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only when ok().
  T& value() & {
    CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only when !ok().
  const Error& error() const& {
    CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    CHECK(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const& {
    CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace hocket

#define HOCKET_CONCAT_(a, b) a##b
#define HOCKET_CONCAT(a, b) HOCKET_CONCAT_(a, b)

// Returns the error of `expression` from the enclosing function, or goes on.
#define TRY(expression)                                                                         \
  do {                                                                                          \
    if (auto try_result = (expression); !try_result.ok()) return std::move(try_result).error(); \
  } while (false)

// Declares or assigns `target` from the value of `expression`, or returns its error.
#define TRY_ASSIGN(target, expression) TRY_ASSIGN_(HOCKET_CONCAT(try_result_, __LINE__), target, expression)
#define TRY_ASSIGN_(name, target, expression)     \
  auto name = (expression);                       \
  if (!name.ok()) return std::move(name).error(); \
  target = std::move(name).value()
