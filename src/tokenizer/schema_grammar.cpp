#include "tokenizer/schema_grammar.h"

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace hocket {
namespace {

// XGrammar's numbers may have digits without end, which a small model can write until its token limit, and exponents
// that no reader takes. These definitions take the place of its own.
constexpr std::pair<std::string_view, std::string_view> kBoundedRules[] = {
    {"basic_integer ::= ", R"("0" | "-"? [1-9] [0-9]{0,17})"},
    {"basic_number ::= ", R"("-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [+\-]? [0-9]{1,2})?)"},
};

// Digits of a multiple behind its first one.
constexpr int kMultipleDigits = 14;
constexpr std::string_view kMultipleMark = "_multiple_of_", kRemainderMark = "_mod_";

// The characters of a JSON string that need no escape: as XGrammar writes them, and as they should be. Its complements
// let byte sequences pass that are not UTF-8, and the second form, of strings with a length, raw control characters.
constexpr std::string_view kStringClasses[] = {R"([^\0-\x1f\"\\\r\n])", R"([^\"\\\r\n])"};
constexpr std::string_view kPlainCharacter = R"([\u0020-\u0021\u0023-\u005b\u005d-\ud7ff\ue000-\U0010ffff])";

constexpr std::string_view kAnySpace = R"([ \n\r\t]*)";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// XGrammar's rule for digits that make a multiple out of a number with a known remainder.
struct MultipleRule {
  std::string_view prefix;  // up to the remainder
  int divisor = 1, remainder = 0;
};

std::optional<MultipleRule> multiple_rule(std::string_view line) {
  const std::string_view name = line.substr(0, std::min(line.find(' '), line.size()));
  const std::size_t mark = name.rfind(kRemainderMark), of = name.rfind(kMultipleMark);
  if (mark == std::string_view::npos || of == std::string_view::npos || of > mark) return std::nullopt;
  MultipleRule rule;
  rule.prefix = name.substr(0, mark + kRemainderMark.size());
  const std::string_view divisor = name.substr(of + kMultipleMark.size(), mark - of - kMultipleMark.size());
  const std::string_view remainder = name.substr(rule.prefix.size());
  std::from_chars(divisor.data(), divisor.data() + divisor.size(), rule.divisor);
  std::from_chars(remainder.data(), remainder.data() + remainder.size(), rule.remainder);
  return rule;
}

// The same with a bound on the digits: one rule for each remainder and number of digits left.
void write_multiples(const MultipleRule& rule, std::string& out) {
  const int k = rule.divisor;
  const auto name = [&](int remainder, int left) {
    return left == kMultipleDigits ? fmt::format("{}{}", rule.prefix, remainder)
                                   : fmt::format("{}{}_left_{}", rule.prefix, remainder, left);
  };
  // Which remainders can still become 0.
  std::vector<std::vector<char>> possible(kMultipleDigits + 1, std::vector<char>(static_cast<std::size_t>(k)));
  for (int left = 0; left <= kMultipleDigits; ++left) {
    for (int r = 0; r < k; ++r) {
      char& can = possible[static_cast<std::size_t>(left)][static_cast<std::size_t>(r)];
      can = r == 0;
      for (int digit = 0; left > 0 && digit < 10 && !can; ++digit) {
        can = possible[static_cast<std::size_t>(left) - 1][static_cast<std::size_t>((r * 10 + digit) % k)];
      }
    }
  }
  const auto write = [&](int r, int left) {
    out += name(r, left) + " ::= ";
    const char* separator = "";
    if (r == 0) {
      out += "\"\"";
      separator = " | ";
    }
    for (int digit = 0; left > 0 && digit < 10; ++digit) {
      const int next = (r * 10 + digit) % k;
      if (!possible[static_cast<std::size_t>(left) - 1][static_cast<std::size_t>(next)]) continue;
      out += fmt::format("{}\"{}\" {}", separator, digit, name(next, left - 1));
      separator = " | ";
    }
    out += '\n';
  };
  write(rule.remainder, kMultipleDigits);
  if (rule.remainder != 0) return;  // the others are written once
  for (int left = 0; left < kMultipleDigits; ++left) {
    for (int r = 0; r < k; ++r) {
      if (possible[static_cast<std::size_t>(left)][static_cast<std::size_t>(r)]) write(r, left);
    }
  }
}

std::string with_bounded_rules(const std::string& text) {
  std::string bounded;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    for (const auto& [head, body] : kBoundedRules) {
      if (!line.starts_with(head)) continue;
      bounded += head;
      line = body;
    }
    if (const auto rule = multiple_rule(line)) {
      write_multiples(*rule, bounded);
      begin = end + 1;
      continue;
    }
    bounded += line;
    bounded += '\n';
    begin = end + 1;
  }
  return bounded;
}

// Outside of literals, where the same characters would be a value.
std::string without_free_space(const std::string& text) {
  std::string out;
  bool in_literal = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!in_literal && std::string_view(text).substr(i).starts_with(kAnySpace)) {
      i += kAnySpace.size();
      continue;
    }
    if (text[i] == '\\' && i + 1 < text.size())
      out += text[i++];
    else if (text[i] == '"')
      in_literal = !in_literal;
    out += text[i++];
  }
  return out;
}

}  // namespace

// A model that may write white space anywhere can do so until its token limit; one line is what most training data has.
std::string schema_ebnf(const std::string& schema) {
  std::string text =
      with_bounded_rules(xgrammar::Grammar::FromJSONSchema(schema, false, std::nullopt, std::nullopt, true).ToString());
  // Inside literals a '[' is followed by other text, so only classes are met.
  for (const std::string_view written : kStringClasses) replace_all(text, written, kPlainCharacter);
  return text;
}

std::string gemma_ebnf(const std::string& schema) {
  Json tag{{"type", "structural_tag"},
           {"format", {{"type", "json_schema"}, {"style", "gemma"}, {"json_schema", Json::parse(schema)}}}};
  auto made = xgrammar::Grammar::FromStructuralTag(dump_json(tag));
  if (auto* error = std::get_if<xgrammar::StructuralTagError>(&made)) {
    std::visit([](const auto& e) -> void { throw e; }, *error);
  }
  return with_bounded_rules(without_free_space(std::get<xgrammar::Grammar>(made).ToString()));
}

}  // namespace hocket
