#include "tokenizer/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tokenizer/gbnf_parser.h"

namespace hocket {
namespace {

constexpr double kMaxExpanded = 200'000;  // elements after writing every bounded repetition out

using RuleIndex = std::map<std::string, std::size_t, std::less<>>;

template <class Visit>
void for_each_reference(const std::vector<GbnfSequence>& alternatives, Visit&& visit) {
  for (const GbnfSequence& sequence : alternatives) {
    for (const GbnfElement& element : sequence) {
      if (element.kind == GbnfElement::Kind::kReference) visit(element);
      for_each_reference(element.alternatives, visit);
    }
  }
}

double expanded_size(const std::vector<GbnfSequence>& alternatives) {
  double size = 0;
  for (const GbnfSequence& sequence : alternatives) {
    for (const GbnfElement& e : sequence) {
      const double once = e.kind == GbnfElement::Kind::kGroup ? expanded_size(e.alternatives) : 1;
      size += once * std::max(1, std::max(e.min, e.max));
    }
  }
  return size;
}

// Finds rules that can come back to themselves without consuming anything.
class LeftRecursion {
 public:
  LeftRecursion(const std::vector<GbnfRule>& rules, const RuleIndex& index)
      : rules_(rules), index_(index), nullable_(rules.size()), state_(rules.size()) {}

  Result<void> check() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < rules_.size(); ++i) {
        if (nullable_[i] || !nullable(rules_[i].alternatives)) continue;
        nullable_[i] = changed = true;
      }
    }
    for (std::size_t i = 0; i < rules_.size(); ++i) TRY(visit(i));
    return {};
  }

 private:
  enum State : char { kNew, kOpen, kDone };

  bool nullable(const GbnfElement& e) const {
    if (e.min == 0) return true;
    switch (e.kind) {
      case GbnfElement::Kind::kLiteral:
        return e.literal.empty();
      case GbnfElement::Kind::kClass:
        return false;
      case GbnfElement::Kind::kReference:
        return nullable_[index_.find(e.name)->second];
      case GbnfElement::Kind::kGroup:
        return nullable(e.alternatives);
    }
    return false;
  }
  bool nullable(const std::vector<GbnfSequence>& alternatives) const {
    for (const GbnfSequence& sequence : alternatives) {
      bool all = true;
      for (const GbnfElement& e : sequence) all = all && nullable(e);
      if (all) return true;
    }
    return false;
  }

  void first_rules(const std::vector<GbnfSequence>& alternatives, std::vector<std::size_t>& out) const {
    for (const GbnfSequence& sequence : alternatives) {
      for (const GbnfElement& e : sequence) {
        if (e.kind == GbnfElement::Kind::kReference) out.push_back(index_.find(e.name)->second);
        first_rules(e.alternatives, out);
        if (!nullable(e)) break;
      }
    }
  }

  // Depth first without recursion: a chain of rules may be as long as the grammar.
  Result<void> visit(std::size_t start) {
    struct Frame {
      std::size_t rule;
      std::vector<std::size_t> next;
    };
    std::vector<Frame> stack;
    const auto open = [&](std::size_t rule) {
      state_[rule] = kOpen;
      stack.push_back({rule, {}});
      first_rules(rules_[rule].alternatives, stack.back().next);
    };
    if (state_[start] == kNew) open(start);
    while (!stack.empty()) {
      if (stack.back().next.empty()) {
        state_[stack.back().rule] = kDone;
        stack.pop_back();
        continue;
      }
      const std::size_t rule = stack.back().next.back();
      stack.back().next.pop_back();
      if (state_[rule] == kOpen)
        return gbnf_error(rules_[rule].place, fmt::format("rule \"{}\" is left-recursive", rules_[rule].name));
      if (state_[rule] == kNew) open(rule);
    }
    return {};
  }

  const std::vector<GbnfRule>& rules_;
  const RuleIndex& index_;
  std::vector<char> nullable_;
  std::vector<char> state_;
};

// Letters and digits as they are, everything else as an escape that means the same in literals and classes.
void write_char(std::string& out, char32_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ';
  if (plain) {
    out += static_cast<char>(c);
  } else if (c <= 0xFFFF) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

constexpr GbnfRange kSurrogates{0xD800, 0xDFFF};

// Characters outside the ranges; U+0000 and surrogates are never among them.
std::vector<GbnfRange> complement(std::vector<GbnfRange> ranges) {
  ranges.push_back({0, 0});
  ranges.push_back(kSurrogates);
  std::sort(ranges.begin(), ranges.end(), [](const GbnfRange& a, const GbnfRange& b) { return a.first < b.first; });
  std::vector<GbnfRange> result;
  char32_t next = 0;
  for (const GbnfRange& range : ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = std::max<char32_t>(next, range.last + 1);
  }
  if (next <= 0x10FFFF) result.push_back({next, 0x10FFFF});
  return result;
}

std::vector<GbnfRange> without_surrogates(const std::vector<GbnfRange>& ranges) {
  std::vector<GbnfRange> result;
  for (const GbnfRange& range : ranges) {
    if (range.first < kSurrogates.first) {
      result.push_back({range.first, std::min<char32_t>(range.last, kSurrogates.first - 1)});
    }
    if (range.last > kSurrogates.last) {
      result.push_back({std::max<char32_t>(range.first, kSurrogates.last + 1), range.last});
    }
  }
  return result;
}

class EbnfWriter {
 public:
  explicit EbnfWriter(const RuleIndex& index) : index_(index) {}

  void rule(const GbnfRule& rule) {
    name(rule.name);
    out_ += " ::= ";
    alternatives(rule.alternatives);
    out_ += '\n';
  }
  std::string take() { return std::move(out_); }

 private:
  void name(std::string_view text) {
    if (text == "root") {
      out_ += text;
    } else {
      out_ += fmt::format("r{}", index_.find(text)->second);
    }
  }
  void alternatives(const std::vector<GbnfSequence>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) out_ += " | ";
      if (all[i].empty()) out_ += "\"\"";
      for (std::size_t j = 0; j < all[i].size(); ++j) {
        if (j > 0) out_ += ' ';
        element(all[i][j]);
      }
    }
  }
  void element(const GbnfElement& e) {
    if (e.max == 0) {
      out_ += "\"\"";
      return;
    }
    switch (e.kind) {
      case GbnfElement::Kind::kLiteral:
        out_ += '"';
        for (const char32_t c : e.literal) write_char(out_, c);
        out_ += '"';
        break;
      case GbnfElement::Kind::kClass:
        // XGrammar's own complement lets sequences pass that are not UTF-8, so only positive classes are written.
        out_ += '[';
        for (const GbnfRange& range : e.negated ? complement(e.ranges) : without_surrogates(e.ranges)) {
          write_char(out_, range.first);
          if (range.last != range.first) {
            out_ += '-';
            write_char(out_, range.last);
          }
        }
        out_ += ']';
        break;
      case GbnfElement::Kind::kReference:
        name(e.name);
        break;
      case GbnfElement::Kind::kGroup:
        out_ += '(';
        alternatives(e.alternatives);
        out_ += ')';
        break;
    }
    if (e.min == 1 && e.max == 1) return;
    if (e.min == 0 && e.max == -1) {
      out_ += '*';
    } else if (e.min == 1 && e.max == -1) {
      out_ += '+';
    } else if (e.min == 0 && e.max == 1) {
      out_ += '?';
    } else if (e.max == -1) {
      out_ += fmt::format("{{{},}}", e.min);
    } else {
      out_ += fmt::format("{{{},{}}}", e.min, e.max);
    }
  }

  const RuleIndex& index_;
  std::string out_;
};

}  // namespace

Result<std::string> gbnf_to_ebnf(std::string_view source, std::size_t max_rules) {
  TRY_ASSIGN(const std::vector<GbnfRule> rules, parse_gbnf(source, max_rules));
  RuleIndex index;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!index.emplace(rules[i].name, i).second)
      return gbnf_error(rules[i].place, fmt::format("rule \"{}\" is defined twice", rules[i].name));
  }
  if (!index.contains("root")) return gbnf_error({}, "there is no rule \"root\"");
  double size = 0;
  for (const GbnfRule& rule : rules) {
    const GbnfElement* missing = nullptr;
    for_each_reference(rule.alternatives, [&](const GbnfElement& e) {
      if (!missing && !index.contains(e.name)) missing = &e;
    });
    if (missing) return gbnf_error(missing->place, fmt::format("there is no rule \"{}\"", missing->name));
    size += expanded_size(rule.alternatives);
    if (size > kMaxExpanded)
      return gbnf_error(rule.place, fmt::format("repetitions written out give more than {} elements", kMaxExpanded));
  }
  TRY(LeftRecursion(rules, index).check());

  EbnfWriter writer(index);
  for (const GbnfRule& rule : rules) writer.rule(rule);
  return writer.take();
}

}  // namespace hocket
