#include "chat/stepping_parser.h"

#include <utility>

namespace hocket {

std::vector<ReplyDelta> SteppingParser::push(std::string_view text) {
  buffer_ += text;
  run();
  return std::exchange(deltas_, {});
}

std::vector<ReplyDelta> SteppingParser::finish() {
  final_ = true;
  run();
  return std::exchange(deltas_, {});
}

void SteppingParser::run() {
  while (step()) {
  }
  buffer_.erase(0, at_);
  at_ = 0;
}

void SteppingParser::emit(ReplyDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool joins = !deltas_.empty() && deltas_.back().kind == kind &&
                     (kind != ReplyDelta::Kind::kToolCallArguments || deltas_.back().index + 1 == n_calls_);
  if (!joins) {
    deltas_.emplace_back();
    deltas_.back().kind = kind;
  }
  deltas_.back().text += text;
}

void SteppingParser::emit_arguments(std::string_view text) {
  if (text.empty()) return;
  emit(ReplyDelta::Kind::kToolCallArguments, text);
  deltas_.back().index = n_calls_ - 1;
}

void SteppingParser::announce_call(std::string id, std::string name) {
  ReplyDelta delta;
  delta.kind = ReplyDelta::Kind::kToolCallStart;
  delta.index = n_calls_++;
  delta.call_id = std::move(id);
  delta.call_name = std::move(name);
  deltas_.push_back(std::move(delta));
}

}  // namespace hocket
