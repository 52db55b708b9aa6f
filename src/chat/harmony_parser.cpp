#include "chat/harmony_parser.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "chat/stepping_parser.h"
#include "chat/tool_syntax/call_reader.h"

namespace hocket {
namespace {

constexpr std::string_view kMessage = "<|message|>", kStart = "<|start|>", kChannel = "<|channel|>",
                           kRecipient = "to=", kFunctions = "functions.";
// What ends the text of a message. <|return|> and <|call|> end the answer and are not part of the text, normally.
constexpr std::array<std::string_view, 5> kEnds{"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
constexpr std::size_t kMaxHeader = 512;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// The word that follows `mark` in a header; "" when there is none.
std::string word_after(std::string_view header, std::string_view mark) {
  const std::size_t at = header.find(mark);
  if (at == std::string_view::npos) return {};
  std::size_t begin = at + mark.size(), end = begin;
  while (end < header.size() && !is_space(header[end]) && header[end] != '<') ++end;
  return std::string(header.substr(begin, end - begin));
}

class HarmonyParser : public SteppingParser {
 public:
  explicit HarmonyParser(const std::vector<Tool>& tools) {
    for (const Tool& tool : tools) names_.insert(tool.name);
  }

 private:
  // kBetween: a header may begin. kHeader: up to <|message|>. The others: the text of a message.
  enum class State { kBetween, kHeader, kContent, kReasoning, kCall };

  bool step() override {
    switch (state_) {
      case State::kBetween:
        return step_between();
      case State::kHeader:
        return step_header();
      case State::kContent:
      case State::kReasoning:
        return step_text();
      case State::kCall:
        return step_call();
    }
    return false;
  }

  // The prompt ends with <|start|>assistant, so that a header goes on with a channel or a recipient.
  bool step_between() {
    const std::string_view text = rest();
    std::size_t space = 0;
    while (space < text.size() && is_space(text[space])) ++space;
    const std::string_view word = text.substr(space);
    for (const std::string_view begin : {kStart, kChannel, kRecipient, kMessage}) {
      if (word.starts_with(begin)) {
        state_ = State::kHeader;
        return true;
      }
    }
    for (const std::string_view stray : {kEnds[0], kEnds[1], kEnds[2]}) {
      if (!word.starts_with(stray)) continue;
      at_ += space + stray.size();
      return true;
    }
    if (!final_ && (word.empty() || possible_beginning(word))) return false;
    if (final_ && word.empty() && any_message_) {
      at_ += text.size();
      return false;
    }
    state_ = State::kContent;
    return true;
  }

  static bool possible_beginning(std::string_view word) {
    for (const std::string_view begin : {kStart, kChannel, kRecipient, kMessage, kEnds[0], kEnds[1], kEnds[2]}) {
      if (begin.starts_with(word)) return true;
    }
    return false;
  }

  bool step_header() {
    const std::string_view text = rest();
    const std::size_t end = text.find(kMessage);
    if (end == std::string_view::npos || end > kMaxHeader) {
      const bool too_long = text.size() >= kMaxHeader + kMessage.size();
      if (!final_ && !too_long) return false;
      // A header that was cut off says nothing; one without an end is text.
      if (!too_long && any_message_) {
        at_ += text.size();
        return false;
      }
      return to_content_verbatim(0);
    }
    const std::string_view header = text.substr(0, end);
    const std::string channel = word_after(header, kChannel);
    std::string recipient = word_after(header, kRecipient);
    if (recipient.starts_with(kFunctions)) recipient.erase(0, kFunctions.size());
    const std::size_t n = end + kMessage.size();
    const bool to_user = recipient.empty() || recipient == "user" || recipient == "assistant" || recipient == "all";
    if (!to_user && names_.count(recipient) > 0) {
      header_ = text.substr(0, n);
      at_ += n;
      name_ = recipient;
      reader_ = std::make_unique<ArgumentsReader>(name_, std::make_unique<JsonScanner>());
      started_ = done_ = false;
      body_.clear();
      state_ = State::kCall;
    } else if (!to_user) {
      return to_content_verbatim(n);
    } else {
      at_ += n;
      state_ = channel == "analysis" ? State::kReasoning : State::kContent;
      separate_ = true;
    }
    any_message_ = true;
    return true;
  }

  bool to_content_verbatim(std::size_t n_header) {
    state_ = State::kContent;
    any_message_ = true;
    emit(ReplyDelta::Kind::kContent, rest().substr(0, std::max<std::size_t>(n_header, 1)));
    at_ += std::max<std::size_t>(n_header, 1);
    separate_ = false;
    return true;
  }

  // Bytes that certainly belong to the message, and what ends it if that is known.
  std::size_t safe_size(std::string_view text, std::string_view& end) const {
    std::size_t first = std::string_view::npos;
    for (const std::string_view mark : kEnds) {
      const std::size_t at = text.find(mark);
      if (at < first) {
        first = at;
        end = mark;
      }
    }
    if (first != std::string_view::npos) return first;
    if (final_) return text.size();
    std::size_t held = 0;
    for (const std::string_view mark : kEnds) {
      for (std::size_t n = std::min(text.size(), mark.size() - 1); n > held; --n) {
        if (mark.starts_with(text.substr(text.size() - n))) held = n;
      }
    }
    return text.size() - held;
  }

  bool end_message(std::string_view end) {
    if (end.empty()) return false;
    // A header that follows without an end is read from its own beginning.
    if (end != kStart && end != kChannel) at_ += end.size();
    state_ = State::kBetween;
    return true;
  }

  bool step_text() {
    const std::string_view text = rest();
    std::string_view end;
    const std::size_t n = safe_size(text, end);
    const auto kind = state_ == State::kReasoning ? ReplyDelta::Kind::kReasoning : ReplyDelta::Kind::kContent;
    if (n > 0) {
      bool& any = state_ == State::kReasoning ? any_reasoning_ : any_content_;
      if (std::exchange(separate_, false) && any) emit(kind, "\n");
      any = true;
      emit(kind, text.substr(0, n));
      at_ += n;
    }
    return end_message(end);
  }

  bool step_call() {
    const std::string_view text = rest();
    std::string_view end;
    const std::size_t n = safe_size(text, end);
    for (std::size_t i = 0; i < n; ++i) {
      if (done_) {
        if (!is_space(text[i])) emit(ReplyDelta::Kind::kContent, text.substr(i, 1));
        continue;
      }
      const CallReader::Status status = reader_->feed(text[i]);
      if (status == CallReader::Status::kBroken) return no_arguments(i);
      body_.push_back(text[i]);
      if (!started_ && reader_->arguments_begun()) start();
      if (started_) body_.clear();
      done_ = status == CallReader::Status::kDone;
      if (done_) flush();
    }
    at_ += n;
    if (end.empty() && !final_) {
      flush();
      return false;
    }
    if (!started_) {
      start();
      if (!end.empty()) emit_arguments("{}");
    }
    if (!done_) reader_->finish();
    flush();
    done_ = false;
    return end_message(end);
  }

  // Something that is no JSON: the rest of the message is content, with all that is not yet a call.
  bool no_arguments(std::size_t n_read) {
    flush();
    if (!started_) emit(ReplyDelta::Kind::kContent, header_ + body_);
    at_ += n_read;
    separate_ = false;
    state_ = State::kContent;
    return true;
  }

  void start() {
    announce_call(make_tool_call_id(), name_);
    started_ = true;
  }

  void flush() {
    if (started_) emit_arguments(reader_->take_arguments());
  }
  std::set<std::string, std::less<>> names_;
  State state_ = State::kBetween;
  bool any_message_ = false, any_reasoning_ = false, any_content_ = false;
  bool separate_ = false;  // a message begins: a line break goes between it and one of its kind

  std::string name_;           // of the call
  std::string header_, body_;  // as they came, until the call is certain
  std::unique_ptr<CallReader> reader_;
  bool started_ = false, done_ = false;
};

}  // namespace

std::unique_ptr<ReplyParser> make_harmony_parser(const std::vector<Tool>& tools) {
  return std::make_unique<HarmonyParser>(tools);
}

}  // namespace hocket
