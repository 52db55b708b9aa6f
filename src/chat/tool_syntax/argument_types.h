// chat/tool_syntax/argument_types.h: what a tool's schema says about its arguments where the text alone cannot tell
// whether 5 is a number or a text.
//
// Threads  const after construction.
// Errors   none: a schema that cannot be read allows anything.
// Cost     linear in the schema.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hocket {

struct ArgumentType {
  bool text = true;             // may be a string
  bool other = true;            // may be something else
  std::set<std::string> fixed;  // strings that an enum names
};

class ArgumentTypes {
 public:
  ArgumentTypes() = default;
  explicit ArgumentTypes(const std::string& parameters_json);
  const ArgumentType& of(std::string_view name) const;

  // The JSON of a value that was written without quotes if it is text: what the schema wants, else what it looks like.
  static std::string json_of(const ArgumentType& type, const std::string& raw);

 private:
  std::map<std::string, ArgumentType, std::less<>> types_;
  ArgumentType others_;
};

}  // namespace hocket
