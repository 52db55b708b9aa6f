#include "chat/tool_syntax/call_layout.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace hocket {
namespace {

using Pieces = std::vector<std::string>;
using Arguments = CallLayout::Arguments;

CallLayout layout(Arguments arguments, Pieces lead, Pieces name_close, Pieces trail, std::size_t n_shared_lead = 0,
                  std::size_t n_shared_trail = 0) {
  CallLayout out;
  out.arguments = arguments;
  out.lead = std::move(lead);
  out.name_close = std::move(name_close);
  out.trail = std::move(trail);
  out.n_shared_lead = n_shared_lead;
  out.n_shared_trail = n_shared_trail;
  return out;
}

CallLayout tagged(Pieces lead, Pieces name_close, std::string key_open, Pieces value_open, std::string value_close,
                  Pieces trail, std::size_t n_shared = 0) {
  CallLayout out =
      layout(Arguments::kTagged, std::move(lead), std::move(name_close), std::move(trail), n_shared, n_shared);
  out.key_open = std::move(key_open);
  out.value_open = std::move(value_open);
  out.value_close = std::move(value_close);
  return out;
}

std::string joined(Pieces::const_iterator begin, Pieces::const_iterator end) {
  std::string out;
  for (; begin != end; ++begin) out += *begin;
  return out;
}

// Without a template's own white space.
CallLayout with_plain_spelling(CallLayout l) {
  const auto shared_lead = l.lead.begin() + static_cast<std::ptrdiff_t>(l.n_shared_lead);
  const auto shared_trail = l.trail.end() - static_cast<std::ptrdiff_t>(l.n_shared_trail);
  CallSpelling& s = l.spelling;
  s.shared_lead = joined(l.lead.begin(), shared_lead);
  s.lead = joined(shared_lead, l.lead.end()) + (l.numbered ? "functions." : "");
  s.name_close = joined(l.name_close.begin(), l.name_close.end());
  s.trail = joined(l.trail.begin(), shared_trail);
  s.shared_trail = joined(shared_trail, l.trail.end());
  if (l.arguments == Arguments::kPython) s.separator = ", ";
  s.key_open = l.key_open;
  s.value_open = joined(l.value_open.begin(), l.value_open.end());
  s.value_close = l.value_close;
  return l;
}

// A layout whose pieces begin with those of another comes first.
std::vector<CallLayout> make_layouts() {
  CallLayout numbered =
      layout(Arguments::kJson, {"<|tool_calls_section_begin|>", "<|tool_call_begin|>"},
             {"<|tool_call_argument_begin|>"}, {"<|tool_call_end|>", "<|tool_calls_section_end|>"}, 1, 1);
  numbered.numbered = true;
  std::vector<CallLayout> out{
      // Kimi K2
      std::move(numbered),
      // DeepSeek V3 and R1, then V3.1
      layout(Arguments::kJson, {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>"},
             {"```json"}, {"```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"}, 1, 1),
      layout(Arguments::kJson, {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"}, {"<｜tool▁sep｜>"},
             {"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"}, 1, 1),
      // Gemma 4
      layout(Arguments::kGemma, {"<|tool_call>", "call:"}, {}, {"<tool_call|>"}),
      // LFM2
      layout(Arguments::kPython, {"<|tool_call_start|>", "["}, {}, {"]", "<|tool_call_end|>"}, 2, 2),
      // Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5; Seed-OSS
      tagged({"<tool_call>", "<function="}, {">"}, "<parameter=", {">"}, "</parameter>",
             {"</function>", "</tool_call>"}),
      tagged({"<seed:tool_call>", "<function="}, {">"}, "<parameter=", {">"}, "</parameter>",
             {"</function>", "</seed:tool_call>"}),
      // MiniMax M2
      tagged({"<minimax:tool_call>", "<invoke name=\""}, {"\">"}, "<parameter name=\"", {"\">"}, "</parameter>",
             {"</invoke>", "</minimax:tool_call>"}, 1),
      // Hunyuan 3
      tagged({"<tool_calls:opensource>", "<tool_call:opensource>"}, {"<tool_sep:opensource>"}, "<arg_key:opensource>",
             {"</arg_key:opensource>", "<arg_value:opensource>"}, "</arg_value:opensource>",
             {"</tool_call:opensource>", "</tool_calls:opensource>"}, 1),
      // GLM 4.5 to 5, Ling 3, Laguna, Spark
      tagged({"<tool_call>"}, {}, "<arg_key>", {"</arg_key>", "<arg_value>"}, "</arg_value>", {"</tool_call>"}),
  };
  for (CallLayout& l : out) l = with_plain_spelling(std::move(l));
  return out;
}

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

// Follows pieces through a text; white space may stand before each.
class Follower {
 public:
  Follower(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  bool skip(std::string_view piece) {
    if (!text_.substr(std::min(at_, text_.size())).starts_with(piece)) return false;
    at_ += piece.size();
    return true;
  }
  bool skip_spaced(std::string_view piece) {
    const std::size_t start = at_;
    skip_space();
    if (skip(piece)) return true;
    at_ = start;
    return false;
  }
  bool skip_all(Pieces::const_iterator begin, Pieces::const_iterator end) {
    return std::all_of(begin, end, [&](const std::string& piece) { return skip_spaced(piece); });
  }
  bool skip_all(const Pieces& pieces) { return skip_all(pieces.begin(), pieces.end()); }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  std::string since(std::size_t start) const { return std::string(text_.substr(start, at_ - start)); }

 private:
  std::string_view text_;
  std::size_t at_;
};

// Reads a rendered conversation by one layout and notes the spelling.
class SpellingReader {
 public:
  SpellingReader(std::string_view text, const CallProbe& probe, CallLayout l)
      : text_(text), probe_(probe), layout_(std::move(l)) {}

  std::optional<CallLayout> read() {
    for (std::size_t at = text_.find(layout_.lead[0]); at != std::string_view::npos;
         at = text_.find(layout_.lead[0], at + 1)) {
      if (read_at(at)) return layout_;
    }
    return std::nullopt;
  }

 private:
  bool read_at(std::size_t start) {
    CallSpelling spelling;
    Follower f(text_, start);
    const auto own_lead = layout_.lead.begin() + static_cast<std::ptrdiff_t>(layout_.n_shared_lead);
    if (!f.skip_all(layout_.lead.begin(), own_lead)) return false;
    if (layout_.n_shared_lead > 0 && own_lead != layout_.lead.end()) f.skip_space();
    spelling.shared_lead = f.since(start);
    const std::size_t own = f.at();
    if (!f.skip_all(own_lead, layout_.lead.end())) return false;
    if (layout_.numbered) f.skip("functions.");
    spelling.lead = f.since(own);
    if (!f.skip(probe_.first)) return false;
    if (layout_.numbered && !f.skip(":0")) return false;
    const std::size_t named = f.at();
    if (!f.skip_all(layout_.name_close)) return false;
    const bool ok =
        layout_.arguments == Arguments::kTagged ? read_tagged(f, named, spelling) : read_other(f, named, spelling);
    if (!ok || !read_trail(f, spelling)) return false;
    layout_.spelling = std::move(spelling);
    return true;
  }

  // Up to the first piece of the trail.
  bool read_other(Follower& f, std::size_t named, CallSpelling& spelling) {
    f.skip_space();
    spelling.name_close = f.since(named);
    const std::size_t begin = f.at(), end = text_.find(layout_.trail[0], begin);
    if (end == std::string_view::npos) return false;
    const std::string_view arguments = text_.substr(begin, end - begin);
    if (arguments.find(probe_.text_value) == std::string_view::npos) return false;
    f = Follower(text_, begin + arguments.find_last_not_of(" \t\r\n") + 1);
    return true;
  }

  bool read_tagged(Follower& f, std::size_t named, CallSpelling& spelling) {
    f.skip_space();
    spelling.name_close = f.since(named);
    std::string key, value;
    if (!read_argument(f, key, value, spelling)) return false;
    const std::size_t after_first = f.at();
    f.skip_space();
    spelling.between = f.since(after_first);
    CallSpelling again;
    std::string other_key, other_value;
    if (!read_argument(f, other_key, other_value, again)) return false;
    if (!is_probe(key, value) || !is_probe(other_key, other_value) || key == other_key) return false;
    const std::size_t after_last = f.at();
    Follower ahead = f;
    ahead.skip_space();
    spelling.last = ahead.since(after_last);
    // Every argument is written with `between` behind it.
    if (spelling.last.starts_with(spelling.between)) {
      spelling.last.erase(0, spelling.between.size());
    } else {
      spelling.between.clear();
    }
    f = ahead;
    return true;
  }

  bool is_probe(const std::string& key, const std::string& value) const {
    return (key == probe_.text_key && value == probe_.text_value) ||
           (key == probe_.number_key && value == probe_.number_value);
  }

  bool read_argument(Follower& f, std::string& key, std::string& value, CallSpelling& spelling) {
    if (!f.skip(layout_.key_open)) return false;
    spelling.key_open = layout_.key_open;
    const std::size_t key_at = f.at(), key_end = text_.find(layout_.value_open[0], key_at);
    if (key_end == std::string_view::npos) return false;
    key = std::string(text_.substr(key_at, key_end - key_at));
    f = Follower(text_, key_end);
    if (!f.skip_all(layout_.value_open)) return false;
    spelling.value_open = f.since(key_end);
    const std::size_t value_at = f.at(), value_end = text_.find(layout_.value_close, value_at);
    if (value_end == std::string_view::npos) return false;
    value = std::string(text_.substr(value_at, value_end - value_at));
    layout_.padded = value.size() >= 2 && value.front() == '\n' && value.back() == '\n';
    if (layout_.padded) value = value.substr(1, value.size() - 2);
    f = Follower(text_, value_end);
    f.skip(layout_.value_close);
    spelling.value_close = layout_.value_close;
    return true;
  }

  bool read_trail(Follower& f, CallSpelling& spelling) {
    const auto own_end = layout_.trail.end() - static_cast<std::ptrdiff_t>(layout_.n_shared_trail);
    const std::size_t start = f.at();
    if (!f.skip_all(layout_.trail.begin(), own_end)) return false;
    spelling.trail = f.since(start);
    // Another call tells what stands between two.
    const std::size_t end_of_first = f.at();
    const std::string next = spelling.lead + probe_.second;
    const std::size_t second = text_.find(next, end_of_first);
    spelling.separator = layout_.arguments == Arguments::kPython ? ", " : "";
    if (second != std::string_view::npos) {
      if (second - end_of_first <= 4)
        spelling.separator = std::string(text_.substr(end_of_first, second - end_of_first));
      Follower head(text_, second + next.size());
      if (layout_.numbered) head.skip(":1");
      head.skip_all(layout_.name_close);
      const std::size_t close = text_.find(layout_.trail[0], head.at());
      if (close != std::string_view::npos) {
        f = Follower(text_, close);
        if (!f.skip_all(layout_.trail.begin(), own_end)) return false;
      }
    }
    const std::size_t shared = f.at();
    if (!f.skip_all(own_end, layout_.trail.end())) return false;
    spelling.shared_trail = f.since(shared);
    return true;
  }

  std::string_view text_;
  const CallProbe& probe_;
  CallLayout layout_;
};

}  // namespace

const std::vector<CallLayout>& known_call_layouts() {
  static const std::vector<CallLayout> kLayouts = make_layouts();
  return kLayouts;
}

std::optional<CallLayout> find_call_layout(std::string_view rendered, const CallProbe& probe) {
  for (const CallLayout& known : known_call_layouts()) {
    if (auto found = SpellingReader(rendered, probe, known).read()) return found;
  }
  return std::nullopt;
}

}  // namespace hocket
