#include "chat/tool_syntax/tagged_scanner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "chat/tool_syntax/json_scanner.h"
#include "chat/tool_syntax/json_text.h"

namespace hocket {

namespace {
constexpr std::size_t kMaxKey = 256;
}  // namespace

using Status = ValueScanner::Status;

Status TaggedScanner::feed(char c, std::string& copy) {
  Status status = Status::kBroken;
  switch (state_) {
    case State::kBetween:
      status = between(c, copy);
      break;
    case State::kKey:
      status = in_key(c, copy);
      break;
    case State::kValueOpen:
      status = in_value_open(c, copy);
      break;
    case State::kValue:
      return in_value(c, copy);
  }
  if (status == Status::kMore && state_ != State::kValue) raw_.push_back(c);
  // What was complete before is a call all the same.
  if (status == Status::kBroken && begun_) copy += '}';
  return status;
}

Status TaggedScanner::between(char c, std::string& copy) {
  if (pending_.empty() && is_json_space(c)) return Status::kMore;
  pending_.push_back(c);
  const auto begin = [&] {
    if (!std::exchange(begun_, true)) copy += '{';
    pending_.clear();
  };
  if (pending_ == layout_->key_open) {
    begin();
    key_.clear();
    state_ = State::kKey;
    return Status::kMore;
  }
  bool possible = layout_->key_open.starts_with(pending_);
  for (const std::string& end : layout_->trail) {
    if (pending_ == end) {
      begin();
      copy += '}';
      return Status::kEnd;
    }
    possible = possible || end.starts_with(pending_);
  }
  if (possible) return Status::kMore;
  pending_.clear();
  return Status::kBroken;
}

Status TaggedScanner::in_key(char c, std::string& copy) {
  const std::string& end = layout_->value_open[0];
  key_.push_back(c);
  if (key_.size() > kMaxKey + end.size() || c == '\n') return Status::kBroken;
  if (!key_.ends_with(end)) return Status::kMore;
  key_.resize(key_.size() - end.size());
  if (key_.empty()) return Status::kBroken;
  n_opened_ = 1;
  state_ = State::kValueOpen;
  if (n_opened_ == layout_->value_open.size()) begin_value(copy);
  return Status::kMore;
}

Status TaggedScanner::in_value_open(char c, std::string& copy) {
  if (pending_.empty() && is_json_space(c)) return Status::kMore;
  pending_.push_back(c);
  const std::string& piece = layout_->value_open[n_opened_];
  if (!piece.starts_with(pending_)) return Status::kBroken;
  if (pending_ != piece) return Status::kMore;
  if (++n_opened_ == layout_->value_open.size()) begin_value(copy);
  pending_.clear();
  return Status::kMore;
}

void TaggedScanner::begin_value(std::string& copy) {
  if (!std::exchange(first_, false)) copy += ", ";
  copy += dump_json(key_) + ": ";
  type_ = &types_->of(key_);
  if (!type_->other) copy += '"';
  pending_.clear();
  value_.clear();
  raw_.clear();
  at_value_start_ = layout_->padded;
  state_ = State::kValue;
}

Status TaggedScanner::in_value(char c, std::string& copy) {
  if (std::exchange(at_value_start_, false) && c == '\n') return Status::kMore;
  pending_.push_back(c);
  const std::string& close = layout_->value_close;
  if (pending_.ends_with(close)) {
    pending_.resize(pending_.size() - close.size());
    if (layout_->padded && pending_.ends_with('\n')) pending_.pop_back();
    add_value(pending_, copy);
    copy += type_->other ? ArgumentTypes::json_of(*type_, value_) : "\"";
    pending_.clear();
    raw_.clear();
    state_ = State::kBetween;
    return Status::kMore;
  }
  // What may be the end, with the line break before it, waits.
  std::size_t n = std::min(pending_.size(), close.size() - 1);
  while (n > 0 && !close.starts_with(std::string_view(pending_).substr(pending_.size() - n))) --n;
  if (layout_->padded && n < pending_.size() && pending_[pending_.size() - n - 1] == '\n') ++n;
  add_value(std::string_view(pending_).substr(0, pending_.size() - n), copy);
  pending_.erase(0, pending_.size() - n);
  return Status::kMore;
}

void TaggedScanner::add_value(std::string_view text, std::string& copy) {
  if (type_->other) {
    value_ += text;
    return;
  }
  for (const char c : text) append_json_character(copy, c);
}

// What was cut off stays open, so that nobody takes it for complete.
void TaggedScanner::finish(std::string& copy) {
  if (state_ == State::kValue) {
    add_value(pending_, copy);
    if (type_->other) copy += value_;
  } else if (state_ != State::kBetween) {
    copy += (first_ ? "" : ", ") + dump_json(key_);
    copy.pop_back();
  } else if (begun_ && pending_.empty()) {
    copy += '}';
  }
  pending_.clear();
}

std::string TaggedScanner::take_unread() {
  return std::exchange(raw_, {});
}

}  // namespace hocket
