#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/splitter.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <cstdint>
#include <string>

#include "base/utf8.h"

namespace hocket {
namespace {

// The table's patterns need almost none of this; the limits are there for a rule that somebody adds.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 64u << 10;
constexpr std::size_t kJitStackStart = 32u << 10;
constexpr std::size_t kJitStackLimit = 1u << 20;

// PCRE2's own \s also matches U+180E.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{D} \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string with_white_space_spelled_out(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && in_class)
        out += kWhiteSpace;
      else if (next == 's')
        out += fmt::format("[{}]", kWhiteSpace);
      else if (next == 'S' && !in_class)
        out += fmt::format("[^{}]", kWhiteSpace);
      else
        out += {c, next};
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
using Code = std::unique_ptr<pcre2_code, CodeDeleter>;

class MatchState {
 public:
  MatchState()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr)) {
    if (context_ == nullptr) return;
    pcre2_set_match_limit(context_, kMatchLimit);
    pcre2_set_heap_limit(context_, kHeapLimitKib);
    // Without a stack of its own the JIT code uses 32 KiB of the thread's and fails cleanly beyond.
    if (stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  ~MatchState() {
    if (stack_ != nullptr) pcre2_jit_stack_free(stack_);
    pcre2_match_context_free(context_);
    pcre2_match_data_free(data_);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  bool ok() const { return data_ != nullptr && context_ != nullptr; }
  pcre2_match_data* data() const { return data_; }
  pcre2_match_context* context() const { return context_; }

 private:
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

struct Rule {
  SplitRule::Kind kind;
  Code code;
  bool jit = false;
};

// Appends the ends of the pieces of text[begin, end) under a regular expression.
Result<void> cut_by_regex(const Rule& rule, std::string_view text, std::size_t begin, std::size_t end,
                          MatchState& state, std::vector<std::size_t>& ends) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() + begin);
  const std::size_t n_bytes = end - begin;
  std::size_t piece = 0;  // where the piece that is open begins
  std::size_t from = 0;
  while (from < n_bytes) {
    const int rc = rule.jit ? pcre2_jit_match(rule.code.get(), subject, n_bytes, from, 0, state.data(), state.context())
                            : pcre2_match(rule.code.get(), subject, n_bytes, from, PCRE2_NO_UTF_CHECK, state.data(),
                                          state.context());
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("the text passes a limit of the pre-tokenizer (PCRE2 error {})", rc));
    }
    const PCRE2_SIZE* at = pcre2_get_ovector_pointer(state.data());
    if (at[0] > piece) ends.push_back(begin + at[0]);
    if (at[1] > at[0]) ends.push_back(begin + at[1]);
    piece = at[1];
    if (at[1] == n_bytes) break;
    from = at[1] > at[0] ? at[1] : at[1] + decode_utf8(text.substr(begin + at[1])).n_bytes;
  }
  if (piece < n_bytes) ends.push_back(end);
  return {};
}

void cut_by_digit_groups(std::string_view text, std::size_t begin, std::size_t end, std::vector<std::size_t>& ends) {
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = begin; i < end;) {
    if (!is_digit(i)) {
      ++i;
      continue;
    }
    std::size_t stop = i;
    while (stop < end && is_digit(stop)) ++stop;
    for (std::size_t cut = i + (stop - i) % 3; cut < stop; cut += 3)
      if (cut > begin) ends.push_back(cut);
    i = stop;
  }
  ends.push_back(end);
}

class PcreSplitter : public Splitter {
 public:
  explicit PcreSplitter(std::vector<Rule> rules) : rules_(std::move(rules)) {}

  Result<void> split(std::string_view text, std::vector<std::size_t>& ends) const override {
    if (is_valid_utf8(text)) return split_valid(text, ends);
    TRY(split_valid(repair_utf8(text), ends));
    back_to_original(text, ends);
    return {};
  }

 private:
  Result<void> split_valid(std::string_view text, std::vector<std::size_t>& ends) const {
    thread_local MatchState state;
    if (!state.ok()) return Error(ErrorCode::kOutOfMemory, "no memory for the pre-tokenizer");
    ends.clear();
    if (text.empty()) return {};
    ends.push_back(text.size());
    std::vector<std::size_t> next;
    for (const Rule& rule : rules_) {
      next.clear();
      std::size_t begin = 0;
      for (const std::size_t end : ends) {
        if (rule.kind == SplitRule::Kind::kDigitGroups)
          cut_by_digit_groups(text, begin, end, next);
        else
          TRY(cut_by_regex(rule, text, begin, end, state, next));
        begin = end;
      }
      ends.swap(next);
    }
    return {};
  }

  // Ends in the repaired text (three bytes for each bad one) become ends in the text itself.
  static void back_to_original(std::string_view text, std::vector<std::size_t>& ends) {
    std::size_t original = 0, repaired = 0;
    for (std::size_t& end : ends) {
      while (repaired < end) {
        const Utf8Char c = decode_utf8(text.substr(original));
        original += c.n_bytes;
        repaired += c.valid ? c.n_bytes : 3;
      }
      end = original;
    }
  }

  std::vector<Rule> rules_;
};

}  // namespace

Result<std::unique_ptr<Splitter>> Splitter::create(const std::vector<SplitRule>& rules) {
  std::vector<Rule> compiled;
  for (const SplitRule& rule : rules) {
    if (rule.kind == SplitRule::Kind::kDigitGroups) {
      compiled.push_back({rule.kind, nullptr, false});
      continue;
    }
    const std::string pattern = with_white_space_spelled_out(rule.pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr));
    if (!code) {
      return Error(ErrorCode::kInternal, fmt::format("pre-tokenizer rule \"{}\": PCRE2 error {} at {}", rule.pattern,
                                                     error, static_cast<std::size_t>(offset)));
    }
    const bool jit = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
    compiled.push_back({rule.kind, std::move(code), jit});
  }
  return std::unique_ptr<Splitter>(std::make_unique<PcreSplitter>(std::move(compiled)));
}

}  // namespace hocket
