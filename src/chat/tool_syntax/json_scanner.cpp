#include "chat/tool_syntax/json_scanner.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace hocket {

using Status = JsonScanner::Status;

bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Status JsonScanner::feed(char c, std::string& copy) {
  if (string_) return in_string(c, copy);
  if (!word_.empty()) return in_word(c, copy);
  if (is_json_space(c)) {
    copy.push_back(c);
    return Status::kMore;
  }
  switch (want_) {
    case Want::kValueOrClose:
    case Want::kKeyOrClose:
      if (c == '}' || c == ']') return after_value(c, copy);
      [[fallthrough]];
    case Want::kValue:
    case Want::kKey:
      return begin_value(c, copy);
    case Want::kColon:
      if (c != ':') return Status::kBroken;
      want_ = Want::kValue;
      copy.push_back(c);
      return Status::kMore;
    case Want::kNext:
      return after_value(c, copy);
  }
  return Status::kBroken;
}

Status JsonScanner::begin_value(char c, std::string& copy) {
  key_ = want_ == Want::kKey || want_ == Want::kKeyOrClose;
  if (key_ && c != '"') return Status::kBroken;
  if (c == '"') {
    string_ = true;
  } else if (c == '{' || c == '[') {
    if (open_.size() >= 256) return Status::kBroken;
    open_.push_back(c);
    want_ = c == '{' ? Want::kKeyOrClose : Want::kValueOrClose;
  } else if (c == '-' || std::isalnum(static_cast<unsigned char>(c))) {
    word_.push_back(c);
  } else {
    return Status::kBroken;
  }
  copy.push_back(c);
  return Status::kMore;
}

// A comma or a closing bracket.
Status JsonScanner::after_value(char c, std::string& copy) {
  if (open_.empty()) return Status::kBroken;
  const bool object = open_.back() == '{';
  if (c == ',' && want_ == Want::kNext) {
    want_ = object ? Want::kKey : Want::kValue;
    copy.push_back(c);
    return Status::kMore;
  }
  if (c != (object ? '}' : ']')) return Status::kBroken;
  open_.pop_back();
  copy.push_back(c);
  return end_of_value();
}

Status JsonScanner::end_of_value() {
  want_ = Want::kNext;
  return open_.empty() ? Status::kEnd : Status::kMore;
}

Status JsonScanner::in_string(char c, std::string& copy) {
  if (n_escape_ > 0) {
    const bool unicode = n_escape_ == 5 && c == 'u';
    const bool fits = n_escape_ == 5 ? std::strchr("\"\\/bfnrtu", c) != nullptr && c != '\0'
                                     : std::isxdigit(static_cast<unsigned char>(c)) != 0;
    if (!fits) return Status::kBroken;
    n_escape_ = n_escape_ == 5 ? (unicode ? 4 : 0) : n_escape_ - 1;
  } else if (static_cast<unsigned char>(c) < 0x20) {
    copy += c == '\n'   ? std::string("\\n")
            : c == '\t' ? std::string("\\t")
                        : fmt::format("\\u{:04x}", static_cast<int>(c));
    return Status::kMore;
  } else if (c == '\\') {
    n_escape_ = 5;
  } else if (c == '"') {
    string_ = false;
    copy.push_back(c);
    if (!key_) return end_of_value();
    want_ = Want::kColon;
    return Status::kMore;
  }
  copy.push_back(c);
  return Status::kMore;
}

Status JsonScanner::in_word(char c, std::string& copy) {
  if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+') {
    if (word_.size() >= 400) return Status::kBroken;
    word_.push_back(c);
    copy.push_back(c);
    return Status::kMore;
  }
  if (!parse_json(word_)) return Status::kBroken;
  word_.clear();
  if (end_of_value() == Status::kEnd) return Status::kEndBefore;
  return feed(c, copy);
}

}  // namespace hocket
