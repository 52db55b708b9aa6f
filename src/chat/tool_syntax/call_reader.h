// chat/tool_syntax/call_reader.h: reads one tool call: {"name": …, "arguments": {…}} in any order, or arguments alone.
//
// Threads  one user at a time.
// Errors   kBroken; the character that broke it is not consumed.
// Cost     constant per character.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "chat/tool_syntax/json_scanner.h"

namespace hocket {

class CallReader {
 public:
  enum class Status { kMore, kDone, kBroken };

  // An object with a name and arguments ("arguments" or "parameters").
  CallReader() = default;
  // The name is known; an object of arguments follows.
  explicit CallReader(std::string name) : phase_(Phase::kValueStart), role_(Role::kArguments), bare_(true) {
    name_ = std::move(name);
  }

  Status feed(char c);

  // The name, once it was read.
  const std::optional<std::string>& name() const { return name_; }
  bool arguments_begun() const { return begun_; }
  // What was read of the arguments since the last call.
  std::string take_arguments() { return std::exchange(arguments_, {}); }

 private:
  enum class Phase { kStart, kKeyOrEnd, kKey, kInKey, kColon, kValueStart, kInValue, kAfterValue };
  enum class Role { kOther, kName, kArguments };
  Status between(char c);
  Status begin_key(char c);
  Status begin_value(char c);
  Status in_value(char c);
  bool end_key();
  bool end_value();

  Phase phase_ = Phase::kStart;
  Role role_ = Role::kOther;
  bool bare_ = false;     // no object around the arguments
  bool as_text_ = false;  // the arguments are JSON inside a string
  bool begun_ = false;
  JsonScanner scanner_;
  std::string text_;  // of the key, the name, or arguments inside a string
  std::string arguments_;
  std::optional<std::string> name_;
};

}  // namespace hocket
