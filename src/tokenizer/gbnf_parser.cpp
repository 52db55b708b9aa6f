#include "tokenizer/gbnf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "tokenizer/gbnf.h"

namespace hocket {
namespace {

constexpr int kMaxNesting = 64;
constexpr char32_t kLastCodePoint = 0x10FFFF;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {}

  Result<std::vector<GbnfRule>> parse(std::size_t max_rules) {
    std::vector<GbnfRule> rules;
    skip_space(true);
    while (!at_end()) {
      GbnfRule rule;
      rule.place = place_;
      TRY_ASSIGN(rule.name, name());
      skip_space(false);
      if (!take("::=")) return error("\"::=\" expected after the name of a rule");
      skip_space(true);
      TRY_ASSIGN(rule.alternatives, alternatives(0));
      if (!at_end() && peek() != '\n' && peek() != '\r') return error("the rule should end here");
      rules.push_back(std::move(rule));
      if (rules.size() > max_rules) return error(fmt::format("more than {} rules", max_rules));
      skip_space(true);
    }
    return rules;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void advance(std::size_t n_bytes = 1) {
    for (; n_bytes > 0 && !at_end(); --n_bytes, ++at_) {
      if (text_[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) {
        ++place_.column;  // columns count characters
      }
    }
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    advance(word.size());
    return true;
  }
  void skip_space(bool over_lines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        while (!at_end() && peek() != '\n') advance();
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        advance();
      } else {
        return;
      }
    }
  }
  // At the end of a line: goes on when the next line begins with '|'.
  void join_next_alternative() {
    const std::size_t at = at_;
    const GbnfPlace place = place_;
    skip_space(true);
    if (peek() == '|') return;
    at_ = at;
    place_ = place;
  }

  Error error(std::string_view what) const { return gbnf_error(place_, what); }

  Result<std::string> name() {
    const std::size_t begin = at_;
    while (is_name_char(peek())) advance();
    if (at_ == begin) return error("the name of a rule expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::vector<GbnfSequence>> alternatives(int depth) {
    std::vector<GbnfSequence> result;
    while (true) {
      TRY_ASSIGN(GbnfSequence sequence, this->sequence(depth));
      result.push_back(std::move(sequence));
      skip_space(depth > 0);
      if (depth == 0 && peek() != '|') join_next_alternative();
      if (peek() != '|') return result;
      advance();
      skip_space(true);
    }
  }

  Result<GbnfSequence> sequence(int depth) {
    GbnfSequence result;
    while (true) {
      skip_space(depth > 0);
      if (at_end() || peek() == '|' || peek() == ')' || peek() == '\n' || peek() == '\r') return result;
      TRY_ASSIGN(GbnfElement element, this->element(depth));
      TRY_ASSIGN(element, repeated(std::move(element)));
      result.push_back(std::move(element));
    }
  }

  Result<GbnfElement> element(int depth) {
    GbnfElement element;
    element.place = place_;
    const char c = peek();
    if (c == '"') {
      TRY(literal(element));
    } else if (c == '[') {
      TRY(char_class(element));
    } else if (c == '.') {
      advance();
      element.kind = GbnfElement::Kind::kClass;
      element.ranges = {{1, kLastCodePoint}};
    } else if (c == '(') {
      if (depth >= kMaxNesting) return error(fmt::format("groups are nested deeper than {}", kMaxNesting));
      advance();
      element.kind = GbnfElement::Kind::kGroup;
      TRY_ASSIGN(element.alternatives, alternatives(depth + 1));
      if (peek() != ')') return error("\")\" expected");
      advance();
    } else if (c == '<' || (c == '!' && peek(1) == '<')) {
      return error("token references are not supported");
    } else if (is_name_char(c)) {
      element.kind = GbnfElement::Kind::kReference;
      TRY_ASSIGN(element.name, name());
    } else {
      return error("a literal, a character class, a group or the name of a rule expected");
    }
    return element;
  }

  Result<GbnfElement> repeated(GbnfElement element) {
    while (true) {
      int min = 0, max = -1;
      const GbnfPlace place = place_;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (take("{")) {
        skip_space(false);
        TRY_ASSIGN(min, bound());
        max = min;
        skip_space(false);
        if (take(",")) {
          skip_space(false);
          max = -1;
          if (peek() != '}') {
            TRY_ASSIGN(max, bound());
            skip_space(false);
          }
        }
        if (!take("}")) return error("\"}\" expected");
        if (max >= 0 && max < min) return gbnf_error(place, "the bounds of a repetition are in the wrong order");
      } else {
        return element;
      }
      if (element.min != 1 || element.max != 1) {  // a repetition of a repetition
        GbnfElement group;
        group.kind = GbnfElement::Kind::kGroup;
        group.place = element.place;
        group.alternatives.emplace_back();
        group.alternatives[0].push_back(std::move(element));
        element = std::move(group);
      }
      element.min = min;
      element.max = max;
    }
  }

  Result<int> bound() {
    if (peek() < '0' || peek() > '9') return error("a number expected");
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (peek() - '0');
      if (value > kMaxGbnfRepeat) return error(fmt::format("repetitions above {} are not allowed", kMaxGbnfRepeat));
      advance();
    }
    return value;
  }

  Result<char32_t> character() {
    if (peek() == '\\') return escape();
    const Utf8Char c = decode_utf8(text_.substr(at_));
    if (!c.valid) return error("bytes that are not UTF-8");
    advance(c.n_bytes);
    return c.code_point;
  }

  Result<char32_t> escape() {
    const GbnfPlace place = place_;
    advance();
    const char c = peek();
    constexpr std::string_view kPlain = "\\\"[]-^";
    if (c != '\0' && kPlain.find(c) != std::string_view::npos) {
      advance();
      return static_cast<char32_t>(c);
    }
    int n_digits = 0;
    switch (c) {
      case 'n':
        advance();
        return U'\n';
      case 'r':
        advance();
        return U'\r';
      case 't':
        advance();
        return U'\t';
      case 'x':
        n_digits = 2;
        break;
      case 'u':
        n_digits = 4;
        break;
      case 'U':
        n_digits = 8;
        break;
      default:
        return gbnf_error(place, "an unknown escape");
    }
    advance();
    uint64_t value = 0;
    for (int i = 0; i < n_digits; ++i) {
      const char d = peek();
      const int digit = d >= '0' && d <= '9'   ? d - '0'
                        : d >= 'a' && d <= 'f' ? d - 'a' + 10
                        : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                               : -1;
      if (digit < 0) return gbnf_error(place, fmt::format("\\{} needs {} hexadecimal digits", c, n_digits));
      value = value * 16 + static_cast<uint64_t>(digit);
      advance();
    }
    if (value == 0 || value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF))
      return gbnf_error(place, "an escape that is no character of text");
    return static_cast<char32_t>(value);
  }

  Result<void> literal(GbnfElement& element) {
    advance();
    while (peek() != '"') {
      if (at_end() || peek() == '\n') return error("a literal is not closed");
      TRY_ASSIGN(const char32_t c, character());
      element.literal += c;
    }
    advance();
    return {};
  }

  Result<void> char_class(GbnfElement& element) {
    element.kind = GbnfElement::Kind::kClass;
    advance();
    element.negated = take("^");
    while (peek() != ']') {
      if (at_end() || peek() == '\n') return error("a character class is not closed");
      const GbnfPlace place = place_;
      TRY_ASSIGN(const char32_t first, character());
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        advance();
        if (at_end() || peek() == '\n') return error("a character class is not closed");
        TRY_ASSIGN(last, character());
        if (last < first) return gbnf_error(place, "a range of characters is in the wrong order");
      }
      element.ranges.push_back({first, last});
    }
    if (element.ranges.empty()) return gbnf_error(element.place, "an empty character class");
    advance();
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  GbnfPlace place_;
};

}  // namespace

Error gbnf_error(GbnfPlace place, std::string_view what) {
  return Error(ErrorCode::kInvalid, fmt::format("line {}, column {}: {}", place.line, place.column, what));
}

Result<std::vector<GbnfRule>> parse_gbnf(std::string_view source, std::size_t max_rules) {
  return GbnfParser(source).parse(max_rules);
}

}  // namespace hocket
