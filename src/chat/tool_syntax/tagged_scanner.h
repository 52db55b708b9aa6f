// chat/tool_syntax/tagged_scanner.h: arguments in tags of their own, written as JSON.
//
//   <parameter=city>⏎Zürich⏎</parameter><parameter=days>⏎3⏎</parameter></function>   →   {"city": "Zürich", "days": 3}
//
// A value that can only be a string is passed on as it comes; others when they end. The end of the arguments is the
// first piece of the layout's trail that is met.
//
// Owns     nothing; the layout and the types must outlive it.
// Threads  one user at a time.
// Errors   kBroken for anything else between arguments; take_unread() gives back the argument that broke.
// Cost     constant per character.
#pragma once

#include <string>

#include "chat/tool_syntax/argument_types.h"
#include "chat/tool_syntax/call_layout.h"
#include "chat/tool_syntax/value_scanner.h"

namespace hocket {

class TaggedScanner : public ValueScanner {
 public:
  TaggedScanner(const CallLayout& layout, const ArgumentTypes& types) : layout_(&layout), types_(&types) {}

  Status feed(char c, std::string& copy) override;
  void finish(std::string& copy) override;
  std::string take_unread() override;

 private:
  enum class State { kBetween, kKey, kValueOpen, kValue };
  Status between(char c, std::string& copy);
  Status in_key(char c, std::string& copy);
  Status in_value_open(char c, std::string& copy);
  void begin_value(std::string& copy);
  Status in_value(char c, std::string& copy);
  void add_value(std::string_view text, std::string& copy);

  const CallLayout* layout_;
  const ArgumentTypes* types_;
  State state_ = State::kBetween;
  std::string raw_;      // of the argument that is not certain yet
  std::string pending_;  // the beginning of a piece; in a value, what may be its end
  std::string key_, value_;
  std::size_t n_opened_ = 0;  // pieces of value_open that were met
  const ArgumentType* type_ = nullptr;
  bool begun_ = false, first_ = true, at_value_start_ = false;
};

}  // namespace hocket
