// chat/tool_syntax/json_scanner.h: follows one JSON value character by character and says where it ends.
//
// Raw control characters inside strings, which some models write, are escaped in the copy, so that what was copied is
// JSON.
//
// Threads  one user at a time.
// Errors   kBroken; the character that broke it is not consumed.
// Cost     constant per character; nesting to 256.
#pragma once

#include <string>
#include <vector>

#include "chat/tool_syntax/value_scanner.h"

namespace hocket {

class JsonScanner : public ValueScanner {
 public:
  Status feed(char c, std::string& copy) override;

 private:
  enum class Want { kValue, kValueOrClose, kKey, kKeyOrClose, kColon, kNext };
  Status begin_value(char c, std::string& copy);
  Status after_value(char c, std::string& copy);
  Status end_of_value();
  Status in_string(char c, std::string& copy);
  Status in_word(char c, std::string& copy);

  std::vector<char> open_;  // '{' and '['
  Want want_ = Want::kValue;
  bool string_ = false, key_ = false;
  int n_escape_ = 0;  // characters that an escape still takes
  std::string word_;  // a number, true, false or null
};

bool is_json_space(char c);

}  // namespace hocket
