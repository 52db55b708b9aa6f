#include "chat/tool_syntax/literal_scanner.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/tool_syntax/json_scanner.h"
#include "chat/tool_syntax/json_text.h"

namespace hocket {

namespace {
constexpr std::string_view kGemmaQuote = "<|\"|>";
constexpr std::size_t kMaxDepth = 256, kMaxWord = 4096;

bool is_in(char c, const char* set) {
  return c != '\0' && std::strchr(set, c) != nullptr;
}
}  // namespace

using Status = ValueScanner::Status;

Status LiteralScanner::feed(char c, std::string& copy) {
  switch (in_) {
    case In::kNothing:
      return outside(c, copy);
    case In::kWord:
      return in_word(c, copy);
    case In::kQuote:
      return in_quote(c, copy);
    case In::kString:
      return in_string(c, copy);
    case In::kEscape:
      return in_escape(c, copy);
    case In::kStringEnd:
      return after_quote(c, copy);
  }
  return Status::kBroken;
}

Status LiteralScanner::outside(char c, std::string& copy) {
  if (is_json_space(c)) return Status::kMore;
  switch (want_) {
    case Want::kStart:
      if (c != (language_ == Language::kGemma ? '{' : '(')) return Status::kBroken;
      closers_.push_back(c == '{' ? '}' : ')');
      copy += '{';
      want_ = Want::kKeyOrClose;
      return Status::kMore;
    case Want::kColon:
      if (c != ':' && c != '=') return Status::kBroken;
      copy += ": ";
      want_ = Want::kValue;
      return Status::kMore;
    case Want::kNext:
      if (c != ',') return close(c, copy);
      comma_ = true;
      // Python allows a comma before the bracket.
      want_ = closers_.back() == ']' ? Want::kValueOrClose : Want::kKeyOrClose;
      return Status::kMore;
    case Want::kKeyOrClose:
    case Want::kValueOrClose:
      if (is_in(c, "}])")) return close(c, copy);
      return begin_item(c, copy);
    case Want::kKey:
    case Want::kValue:
      return begin_item(c, copy);
  }
  return Status::kBroken;
}

Status LiteralScanner::begin_item(char c, std::string& copy) {
  if (is_in(c, ",:=)}]")) return Status::kBroken;
  if (std::exchange(comma_, false)) copy += ", ";
  if (is_in(c, "{[(")) return open(c, copy);
  word_.assign(1, c);
  if (c == '"' || c == '\'') {
    quote_ = c;
    copy += '"';
    in_ = In::kString;
    word_.clear();
  } else {
    in_ = c == kGemmaQuote[0] ? In::kQuote : In::kWord;
  }
  return Status::kMore;
}

Status LiteralScanner::open(char c, std::string& copy) {
  if (at_key() || closers_.size() >= kMaxDepth) return Status::kBroken;
  copy += c == '{' ? '{' : '[';
  closers_.push_back(c == '{' ? '}' : ']');  // a tuple is a list
  want_ = c == '{' ? Want::kKeyOrClose : Want::kValueOrClose;
  return Status::kMore;
}

Status LiteralScanner::close(char c, std::string& copy) {
  const char wanted = closers_.back();
  const bool tuple = c == ')' && wanted == ']';
  if (c != wanted && !tuple) return Status::kBroken;
  copy += wanted == ']' ? ']' : '}';
  closers_.pop_back();
  comma_ = false;
  want_ = Want::kNext;
  return closers_.empty() ? Status::kEnd : Status::kMore;
}

Status LiteralScanner::in_word(char c, std::string& copy) {
  const bool ends = is_in(c, ",}])") || (at_key() && (c == ':' || c == '='));
  if (!ends) {
    if (is_in(c, "{[(\n") || word_.size() >= kMaxWord) return Status::kBroken;
    word_.push_back(c);
    return Status::kMore;
  }
  if (at_key() && c != ':' && c != '=') return Status::kBroken;
  end_word(copy);
  end_item();
  return outside(c, copy);
}

void LiteralScanner::end_word(std::string& copy) {
  const std::string word = word_.substr(0, word_.find_last_not_of(" \t\r") + 1);
  word_.clear();
  if (at_key()) {
    copy += dump_json(word);
  } else if (word == "True" || word == "False") {
    copy += word == "True" ? "true" : "false";
  } else if (word == "None") {
    copy += "null";
  } else {
    copy += parse_json(word) ? word : dump_json(word);
  }
}

void LiteralScanner::end_item() {
  in_ = In::kNothing;
  want_ = at_key() ? Want::kColon : Want::kNext;
}

Status LiteralScanner::in_quote(char c, std::string& copy) {
  word_.push_back(c);
  if (!kGemmaQuote.starts_with(word_)) {
    word_.pop_back();
    return Status::kBroken;
  }
  if (word_ != kGemmaQuote) return Status::kMore;
  word_.clear();
  quote_ = '\0';
  copy += '"';
  in_ = In::kString;
  return Status::kMore;
}

Status LiteralScanner::in_string(char c, std::string& copy) {
  if (quote_ != '\0') {
    if (c == quote_) {
      in_ = In::kStringEnd;
      word_.clear();
    } else if (c == '\\') {
      in_ = In::kEscape;
      word_.clear();
    } else {
      append_json_character(copy, c);
    }
    return Status::kMore;
  }
  word_.push_back(c);
  if (word_ == kGemmaQuote) {
    word_.clear();
    copy += '"';
    end_item();
    return Status::kMore;
  }
  while (!word_.empty() && !kGemmaQuote.starts_with(word_)) {
    append_json_character(copy, word_[0]);
    word_.erase(0, 1);
  }
  return Status::kMore;
}

// word_ is what came after the backslash.
Status LiteralScanner::in_escape(char c, std::string& copy) {
  word_.push_back(c);
  const char kind = word_[0];
  const std::size_t n_digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (n_digits == 0) {
    in_ = In::kString;
    if (is_in(c, "\"\\/")) {
      append_json_character(copy, c);
    } else if (is_in(c, "bfnrt")) {
      copy += std::string("\\") + c;
    } else if (c != '\'' && c != '\n') {
      copy += "\\\\";  // not an escape: Python keeps the backslash
      append_json_character(copy, c);
    } else if (c == '\'') {
      copy += c;
    }
    return Status::kMore;
  }
  const bool good = word_.size() == 1 || std::isxdigit(static_cast<unsigned char>(c)) != 0;
  if (good && word_.size() < n_digits + 1) return Status::kMore;
  in_ = In::kString;
  if (!good) {
    copy += "\\\\";
    word_.pop_back();
    for (const char kept : word_) append_json_character(copy, kept);
    return in_string(c, copy);
  }
  const unsigned long code = std::stoul(word_.substr(1), nullptr, 16);
  if (code <= 0xFFFF) {
    copy += fmt::format("\\u{:04x}", code);
  } else {
    append_utf8(copy, code <= 0x10FFFF ? static_cast<char32_t>(code) : char32_t{0xFFFD});
  }
  return Status::kMore;
}

Status LiteralScanner::after_quote(char c, std::string& copy) {
  if (is_json_space(c)) {
    word_.push_back(c);
    return Status::kMore;
  }
  const bool ends = at_key() ? c == ':' || c == '=' : is_in(c, ",)]}");
  if (ends) {
    copy += '"';
    word_.clear();
    end_item();
    return outside(c, copy);
  }
  append_json_character(copy, quote_);
  for (const char space : word_) append_json_character(copy, space);
  word_.clear();
  in_ = In::kString;
  return in_string(c, copy);
}

void LiteralScanner::finish(std::string& copy) {
  if (in_ == In::kString && quote_ == '\0') {
    for (const char c : word_) append_json_character(copy, c);
  } else if (in_ == In::kStringEnd) {
    copy += '"';
  } else if (in_ == In::kEscape) {
    copy += "\\\\";
    for (const char c : word_) append_json_character(copy, c);
  } else {
    copy += word_;
  }
  word_.clear();
}

std::string LiteralScanner::take_unread() {
  return std::exchange(word_, {});
}

}  // namespace hocket
