// chat/jinja/program.h: the template language, bounded. Variables in, text out; template.h says what they mean.
//
// The language is Jinja as Hugging Face transformers sets it up (trim_blocks, lstrip_blocks, break and continue,
// tojson, raise_exception, strftime_now), and a little more liberal: list.append and a from_json filter work.
//
// The engine behind it trusts its templates. This layer does not: before execution the parsed program is rewritten so
// that every operation that can grow memory, recurse or loop is checked first. Bounded are
// - the source: TemplateLimits, nesting of blocks and brackets, length of an expression, so parsing cannot recurse
// - time: checked at every loop turn, call, filter and operator
// - the stack: checked at the same places, so recursive macros end with an error; needs a thread of 8 MB
// - memory: a value max_output_bytes, all values made by one render 16 times that, ranges and lists 100,000 items
// - depth of values: 100 where they are printed or compared; cycles count as infinitely deep
//
// Owns     the program.
// Threads  render() from any thread.
// Errors   parse(): kBadModel naming the line. render(): kInvalid with the line and the template's own message.
#pragma once

#include <ctime>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "chat/template.h"

namespace hocket {

class JinjaProgram {
 public:
  static Result<std::unique_ptr<JinjaProgram>> parse(std::string source, const TemplateLimits& limits);
  ~JinjaProgram();

  // `variables` is an object; `now` is what strftime_now shows, in local time.
  Result<std::string> render(const Json& variables, std::time_t now) const;

 private:
  struct Impl;
  explicit JinjaProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hocket
