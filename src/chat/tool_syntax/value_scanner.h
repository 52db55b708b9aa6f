// chat/tool_syntax/value_scanner.h: follows one value character by character, says where it ends and writes it as JSON.
//
// Threads  one user at a time.
// Errors   kBroken; the character that broke it is not consumed.
#pragma once

#include <string>

namespace hocket {

class ValueScanner {
 public:
  // kEnd: the value ended with this character. kEndBefore: it ended before it (numbers and words).
  enum class Status { kMore, kEnd, kEndBefore, kBroken };
  virtual ~ValueScanner() = default;

  // Appends to `copy` what the character adds to the JSON.
  virtual Status feed(char c, std::string& copy) = 0;
  // The text ends inside the value: what was held back is added as far as it came.
  virtual void finish(std::string& copy) { static_cast<void>(copy); }
  // After kBroken or finish(): characters that were consumed but belong to no value.
  virtual std::string take_unread() { return {}; }
};

}  // namespace hocket
