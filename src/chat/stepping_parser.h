// chat/stepping_parser.h: what parsers of streamed replies share: text that is not yet certain, and deltas that are.
//
// A parser says in step() how to get on with rest(); it is asked until it can do no more without further text.
//
// Owns     the text held back and the deltas since the last call.
// Threads  one user at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/reply_format.h"

namespace hocket {

class SteppingParser : public ReplyParser {
 public:
  std::vector<ReplyDelta> push(std::string_view text) override;
  std::vector<ReplyDelta> finish() override;
  std::size_t n_tool_calls() const override { return n_calls_; }

 protected:
  // False: nothing can be done before more text, or the end, comes.
  virtual bool step() = 0;

  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  // Adds text to the last delta where that is of the same kind and call.
  void emit(ReplyDelta::Kind kind, std::string_view text);
  void emit_arguments(std::string_view text);  // of the last call
  void announce_call(std::string id, std::string name);

  std::string buffer_;
  std::size_t at_ = 0;  // of buffer_, consumed
  bool final_ = false;  // no more text comes

 private:
  void run();

  std::size_t n_calls_ = 0;
  std::vector<ReplyDelta> deltas_;
};

}  // namespace hocket
