#include "chat/tool_syntax/call_reader.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace hocket {

using Status = CallReader::Status;

namespace {
std::optional<std::string> string_value(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed || !parsed->is_string()) return std::nullopt;
  return parsed->get<std::string>();
}
}  // namespace

Status ObjectReader::feed(char c) {
  switch (phase_) {
    case Phase::kInKey:
      switch (scanner_.feed(c, text_)) {
        case JsonScanner::Status::kMore:
          return Status::kMore;
        case JsonScanner::Status::kEnd:
          return end_key() ? Status::kMore : Status::kBroken;
        default:
          return Status::kBroken;
      }
    case Phase::kInValue:
      return in_value(c);
    default:
      return is_json_space(c) ? Status::kMore : between(c);
  }
}

Status ObjectReader::between(char c) {
  switch (phase_) {
    case Phase::kStart:
      if (c != '{') return Status::kBroken;
      phase_ = Phase::kKeyOrEnd;
      return Status::kMore;
    case Phase::kKeyOrEnd:
      if (c == '}') return Status::kDone;
      return begin_key(c);
    case Phase::kKey:
      return begin_key(c);
    case Phase::kColon:
      if (c != ':') return Status::kBroken;
      phase_ = Phase::kValueStart;
      return Status::kMore;
    case Phase::kValueStart:
      return begin_value(c);
    case Phase::kAfterValue:
      if (c == '}') return Status::kDone;
      if (c != ',') return Status::kBroken;
      phase_ = Phase::kKey;
      return Status::kMore;
    default:
      return Status::kBroken;
  }
}

Status ObjectReader::begin_key(char c) {
  if (c != '"') return Status::kBroken;
  scanner_ = JsonScanner();
  text_.clear();
  phase_ = Phase::kInKey;
  scanner_.feed(c, text_);
  return Status::kMore;
}

bool ObjectReader::end_key() {
  const auto key = string_value(text_);
  if (!key) return false;
  role_ = *key == "name" ? Role::kName : *key == "arguments" || *key == "parameters" ? Role::kArguments : Role::kOther;
  phase_ = Phase::kColon;
  return !(role_ == Role::kName && name_) && !(role_ == Role::kArguments && begun_);
}

Status ObjectReader::begin_value(char c) {
  if (role_ == Role::kName && c != '"') return Status::kBroken;
  if (role_ == Role::kArguments) {
    // null stands for none.
    if (c != '{' && c != '"' && c != 'n') return Status::kBroken;
    as_text_ = c != '{';
    begun_ = true;
  }
  scanner_ = JsonScanner();
  text_.clear();
  phase_ = Phase::kInValue;
  return in_value(c);
}

Status ObjectReader::in_value(char c) {
  std::string& copy = role_ == Role::kArguments && !as_text_ ? arguments_ : text_;
  const JsonScanner::Status status = scanner_.feed(c, copy);
  if (role_ == Role::kOther) text_.clear();
  switch (status) {
    case JsonScanner::Status::kMore:
      return Status::kMore;
    case JsonScanner::Status::kBroken:
      return Status::kBroken;
    case JsonScanner::Status::kEnd:
      if (!end_value()) return Status::kBroken;
      return Status::kMore;
    case JsonScanner::Status::kEndBefore:
      return end_value() ? feed(c) : Status::kBroken;
  }
  return Status::kBroken;
}

bool ObjectReader::end_value() {
  phase_ = Phase::kAfterValue;
  if (role_ == Role::kName) {
    name_ = string_value(text_);
    return name_.has_value();
  }
  if (role_ == Role::kArguments && as_text_) {
    const auto text = text_ == "null" ? std::optional<std::string>("{}") : string_value(text_);
    if (!text) return false;
    arguments_ = text->empty() ? "{}" : *text;
  }
  return true;
}

Status ArgumentsReader::feed(char c) {
  if (!begun_ && is_json_space(c)) {
    std::string unused;
    return scanner_->feed(c, unused) == ValueScanner::Status::kMore ? Status::kMore : Status::kBroken;
  }
  const ValueScanner::Status status = scanner_->feed(c, arguments_);
  // Arguments are an object, whatever the scanner takes.
  if (!begun_ && !arguments_.empty() && arguments_[0] != '{') return Status::kBroken;
  begun_ = begun_ || !arguments_.empty();
  switch (status) {
    case ValueScanner::Status::kMore:
      return Status::kMore;
    case ValueScanner::Status::kEnd:
      return Status::kDone;
    default:
      return Status::kBroken;
  }
}

}  // namespace hocket
