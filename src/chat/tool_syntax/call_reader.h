// chat/tool_syntax/call_reader.h: reads one tool call: an object with a name and arguments, or arguments alone.
//
// Threads  one user at a time.
// Errors   kBroken; the character that broke it is not consumed.
// Cost     constant per character.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "chat/tool_syntax/json_scanner.h"

namespace hocket {

class CallReader {
 public:
  enum class Status { kMore, kDone, kBroken };
  virtual ~CallReader() = default;

  virtual Status feed(char c) = 0;
  // The text ends inside the call.
  virtual void finish() {}
  // After kBroken: characters that were consumed but are not part of the call.
  virtual std::string take_unread() { return {}; }

  // The name, once it was read.
  const std::optional<std::string>& name() const { return name_; }
  bool arguments_begun() const { return begun_; }
  // What was read of the arguments since the last call.
  std::string take_arguments() { return std::exchange(arguments_, {}); }

 protected:
  bool begun_ = false;
  std::string arguments_;
  std::optional<std::string> name_;
};

// {"name": …, "arguments": {…}} in any order; "parameters" is another word for "arguments".
class ObjectReader : public CallReader {
 public:
  Status feed(char c) override;

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
  bool as_text_ = false;  // the arguments are JSON inside a string
  JsonScanner scanner_;
  std::string text_;  // of the key, the name, or arguments inside a string
};

// The name is known; arguments follow, which the scanner writes as a JSON object.
class ArgumentsReader : public CallReader {
 public:
  ArgumentsReader(std::string name, std::unique_ptr<ValueScanner> scanner) : scanner_(std::move(scanner)) {
    name_ = std::move(name);
  }

  Status feed(char c) override;
  void finish() override { scanner_->finish(arguments_); }
  std::string take_unread() override { return scanner_->take_unread(); }

 private:
  std::unique_ptr<ValueScanner> scanner_;
};

}  // namespace hocket
