#include <algorithm>
#include <map>
#include <utility>

#include "chat/harmony_parser.h"
#include "chat/reply_format.h"
#include "chat/stepping_parser.h"
#include "chat/tool_syntax/argument_types.h"
#include "chat/tool_syntax/call_reader.h"
#include "chat/tool_syntax/literal_scanner.h"
#include "chat/tool_syntax/syntax.h"
#include "chat/tool_syntax/tagged_scanner.h"

namespace hocket {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::size_t space_at_start(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}
std::size_t size_without_space_at_end(std::string_view text) {
  return text.find_last_not_of(kSpace) + 1;
}

// Length of the longest end of `text` that is a beginning of `marker`, but not all of it.
std::size_t partial_at_end(std::string_view text, std::string_view marker) {
  for (std::size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == marker.substr(0, n)) return n;
  }
  return 0;
}

// The text is consumed from the front of buffer_; every state either consumes, changes the state, or waits for more.
// What a state decides depends on the text alone, not on how it was cut into pieces.
class StreamParser : public SteppingParser {
 public:
  StreamParser(const ReplyFormat& format, const std::vector<Tool>& tools, bool starts_in_thinking)
      : format_(format), syntax_(call_syntax(format)) {
    for (const Tool& tool : tools) tools_.emplace(tool.name, argument_types(format, tool));
    state_ = !thinks() ? State::kText : starts_in_thinking ? State::kLeadThinking : State::kLead;
    at_start_ = !tools_.empty() && (format.tools == ToolSyntax::kLlama3 || format.tools == ToolSyntax::kRecipient);
  }

 private:
  enum class State { kLead, kLeadThinking, kThinking, kText, kOpened, kCall, kTail };

  static ArgumentTypes argument_types(const ReplyFormat& format, const Tool& tool) {
    const bool tagged =
        format.tools == ToolSyntax::kLaidOut && format.layout.arguments == CallLayout::Arguments::kTagged;
    return tagged ? ArgumentTypes(tool.parameters_json) : ArgumentTypes();
  }

  bool thinks() const { return !format_.think_close.empty(); }

  bool step() override {
    switch (state_) {
      case State::kLead:
      case State::kLeadThinking:
        return step_lead();
      case State::kThinking:
        return step_thinking();
      case State::kText:
        return step_text();
      case State::kOpened:
        return step_opened();
      case State::kCall:
        return step_call();
      case State::kTail:
        return step_tail();
    }
    return false;
  }

  // An opening tag at the very beginning; a model may repeat the one that the prompt ended with.
  bool step_lead() {
    const std::string_view text = rest(), open = format_.think_open;
    const std::size_t space = space_at_start(text);
    const std::string_view word = text.substr(space);
    if (!open.empty() && word.substr(0, open.size()) == open) {
      at_ += space + open.size();
      state_ = State::kThinking;
      return true;
    }
    if (!final_ && !open.empty() && open.substr(0, word.size()) == word) return false;
    state_ = state_ == State::kLead ? State::kText : State::kThinking;
    return true;
  }

  bool step_thinking() {
    if (thinking_begins_) {
      at_ += space_at_start(rest());
      if (rest().empty()) return false;
      thinking_begins_ = false;
    }
    const std::string_view text = rest();
    const std::size_t close = text.find(format_.think_close);
    if (close != std::string_view::npos) {
      emit(ReplyDelta::Kind::kReasoning, text.substr(0, size_without_space_at_end(text.substr(0, close))));
      at_ += close + format_.think_close.size();
      skip_space_ = true;
      state_ = State::kText;
      return true;
    }
    std::size_t n = final_ ? text.size() : text.size() - partial_at_end(text, format_.think_close);
    n = size_without_space_at_end(text.substr(0, n));
    emit(ReplyDelta::Kind::kReasoning, text.substr(0, n));
    at_ += final_ ? text.size() : n;
    return false;
  }

  bool step_text() {
    if (skip_space_) {
      at_ += space_at_start(rest());
      if (rest().empty()) return false;
      skip_space_ = false;
    }
    const std::string_view text = rest();
    if (tools_.empty()) {
      emit(ReplyDelta::Kind::kContent, text);
      at_ += text.size();
      return false;
    }
    if (at_start_) return step_start();
    std::size_t first = std::string_view::npos;
    std::string_view opener;
    for (const std::string_view candidate : syntax_.openers) {
      const std::size_t found = text.find(candidate);
      if (found < first) {
        first = found;
        opener = candidate;
      }
    }
    if (first != std::string_view::npos) {
      const std::size_t n = size_without_space_at_end(text.substr(0, first));
      emit(ReplyDelta::Kind::kContent, text.substr(0, n));
      open(n, first + opener.size());
      n_lead_met_ = lead_met_with(opener);
      return true;
    }
    // A tag may have begun; space before one is not content.
    std::size_t n = text.size();
    if (!final_) {
      std::size_t n_tag = 0;
      for (const std::string_view candidate : syntax_.openers) n_tag = std::max(n_tag, partial_at_end(text, candidate));
      n = size_without_space_at_end(text.substr(0, text.size() - n_tag));
    }
    emit(ReplyDelta::Kind::kContent, text.substr(0, n));
    at_ += n;
    return false;
  }

  // A call without an opener, at the beginning or after another call.
  bool step_start() {
    const std::string_view text = rest();
    const std::size_t space = space_at_start(text);
    if (space == text.size() && !final_) return false;
    if (format_.tools == ToolSyntax::kLlama3) {
      at_start_ = false;
      if (space < text.size() && text[space] == '{') open(0, space);
      return true;
    }
    const CallHead head = read_call_head(format_.tools, text);
    if (head.status == CallHead::Status::kNeedMore && !final_) return false;
    at_start_ = false;
    if (head.status == CallHead::Status::kFound) open(0, 0);
    return true;
  }

  // raw_ keeps what must become content again if this turns out to be no call.
  void open(std::size_t from, std::size_t to) {
    raw_ = rest().substr(from, to - from);
    n_opener_ = raw_.size();
    at_ += to;
    state_ = State::kOpened;
  }

  // How many pieces of a layout's lead are behind an opener.
  std::size_t lead_met_with(std::string_view opener) const {
    const auto& lead = format_.layout.lead;
    return static_cast<std::size_t>(std::find(lead.begin(), lead.end(), opener) - lead.begin()) + 1;
  }

  bool step_opened() {
    const std::string_view text = rest();
    in_array_ = false;
    started_ = false;
    if (format_.tools == ToolSyntax::kLaidOut)
      return begin_arguments(read_layout_head(format_.layout, n_lead_met_, text));
    const bool mistral = format_.tools == ToolSyntax::kMistral || format_.tools == ToolSyntax::kMistralNamed;
    if (mistral) {
      const std::size_t space = space_at_start(text);
      if (space == text.size()) return final_ ? give_up() : false;
      if (text[space] == '[') {
        raw_ += text.substr(0, space + 1);
        at_ += space + 1;
        in_array_ = true;
      }
    }
    if (in_array_ || format_.tools == ToolSyntax::kGeneric || format_.tools == ToolSyntax::kHermes ||
        format_.tools == ToolSyntax::kLlama3) {
      reader_ = std::make_unique<ObjectReader>();
      state_ = State::kCall;
      return true;
    }
    const CallHead head = read_call_head(format_.tools, text);
    if (head.status == CallHead::Status::kFound && head.name == "all" && format_.tools == ToolSyntax::kRecipient) {
      at_ += head.n_bytes;  // addressed to the user
      raw_.clear();
      state_ = State::kText;
      return true;
    }
    return begin_arguments(head);
  }

  bool begin_arguments(const CallHead& head) {
    if (head.status == CallHead::Status::kNeedMore && !final_) return false;
    const auto tool = tools_.find(head.name);
    if (head.status != CallHead::Status::kFound || tool == tools_.end()) return give_up();
    raw_ += rest().substr(0, head.n_bytes);
    at_ += head.n_bytes;
    call_id_ = head.id;
    reader_ = std::make_unique<ArgumentsReader>(head.name, make_scanner(tool->second));
    state_ = State::kCall;
    return true;
  }

  std::unique_ptr<ValueScanner> make_scanner(const ArgumentTypes& types) const {
    if (format_.tools != ToolSyntax::kLaidOut) return std::make_unique<JsonScanner>();
    switch (format_.layout.arguments) {
      case CallLayout::Arguments::kTagged:
        return std::make_unique<TaggedScanner>(format_.layout, types);
      case CallLayout::Arguments::kGemma:
        return std::make_unique<LiteralScanner>(LiteralScanner::Language::kGemma);
      case CallLayout::Arguments::kPython:
        return std::make_unique<LiteralScanner>(LiteralScanner::Language::kPython);
      case CallLayout::Arguments::kJson:
        break;
    }
    return std::make_unique<JsonScanner>();
  }

  bool step_call() {
    while (at_ < buffer_.size()) {
      const char c = buffer_[at_];
      const CallReader::Status status = reader_->feed(c);
      if (status == CallReader::Status::kBroken) {
        if (!started_) return give_up();
        flush_arguments();
        buffer_.insert(at_, reader_->take_unread());
        return end_call();
      }
      ++at_;
      if (!started_) raw_.push_back(c);
      if (!started_ && reader_->name() && (reader_->arguments_begun() || status == CallReader::Status::kDone)) {
        if (!tools_.count(*reader_->name())) return give_up();
        const bool empty = !reader_->arguments_begun();
        start_call();
        if (empty) emit_arguments("{}");
      }
      if (status == CallReader::Status::kDone) {
        if (!started_) return give_up();
        flush_arguments();
        return end_call();
      }
    }
    if (final_) reader_->finish();
    if (started_) flush_arguments();
    if (!final_) return false;
    if (!started_) {
      if (!reader_->name() || !tools_.count(*reader_->name())) return give_up();
      start_call();
    }
    return end_call();
  }

  bool end_call() {
    state_ = State::kTail;
    return true;
  }

  bool step_tail() {
    const std::size_t space = space_at_start(rest());
    const std::string_view text = rest().substr(space);
    if (text.empty() && !final_) return false;
    std::size_t n = space;
    State next = State::kText;
    if (in_array_) {
      if (!text.empty() && text[0] == ',') {
        open_next();
        reader_ = std::make_unique<ObjectReader>();
        next = State::kCall;
        ++n;
      } else if (!text.empty() && text[0] == ']') {
        ++n;
      }
    } else if (format_.tools == ToolSyntax::kLlama3) {
      if (!text.empty() && text[0] == ';') ++n;
      at_start_ = true;
    } else if (in_list() && !text.empty() && text[0] == ',') {
      open_next();
      n_lead_met_ = format_.layout.lead.size();
      next = State::kOpened;
      ++n;
    } else {
      for (const std::string& closer : syntax_.closers) {
        const PieceMatch piece = match_spaced(rest(), n, closer);
        if (piece.status == PieceMatch::Status::kNeedMore && !final_) return false;
        if (piece.status == PieceMatch::Status::kYes) n = piece.end;
      }
    }
    at_ += n;
    skip_space_ = true;
    state_ = next;
    return true;
  }

  // name(…), name(…)
  bool in_list() const {
    return format_.tools == ToolSyntax::kLaidOut && format_.layout.arguments == CallLayout::Arguments::kPython;
  }

  // After the comma between two calls.
  void open_next() {
    raw_ = ",";
    n_opener_ = 1;
    started_ = false;
  }

  // No call after all: the opener is content, and what followed it is looked at again.
  bool give_up() {
    emit(ReplyDelta::Kind::kContent, std::string_view(raw_).substr(0, n_opener_));
    buffer_.replace(0, at_, raw_.substr(n_opener_));
    at_ = 0;
    raw_.clear();
    // Without an opener the same text would be taken for a call again.
    if (n_opener_ == 0 || syntax_.openers.empty()) at_start_ = false;
    skip_space_ = false;
    state_ = State::kText;
    return true;
  }

  void start_call() {
    std::string id = call_id_.empty() ? make_tool_call_id() : std::exchange(call_id_, {});
    // Templates of this family refuse ids of any other length when the client sends them back.
    const bool mistral = format_.tools == ToolSyntax::kMistral || format_.tools == ToolSyntax::kMistralNamed;
    if (mistral) id = id.substr(id.size() - 9);
    announce_call(std::move(id), *reader_->name());
    started_ = true;
    raw_.clear();
  }

  void flush_arguments() { emit_arguments(reader_->take_arguments()); }
  const ReplyFormat format_;
  const CallSyntax syntax_;
  std::map<std::string, ArgumentTypes, std::less<>> tools_;

  State state_ = State::kText;
  bool thinking_begins_ = true;
  bool skip_space_ = false;
  bool at_start_ = false;

  std::unique_ptr<CallReader> reader_;
  std::string call_id_;         // as the model wrote it
  std::size_t n_lead_met_ = 0;  // pieces of the layout's lead that are behind
  bool started_ = false;        // the call was announced
  bool in_array_ = false;       // [{…}, {…}]
  std::string raw_;
  std::size_t n_opener_ = 0;
};

}  // namespace

std::unique_ptr<ReplyParser> ReplyParser::create(const ReplyFormat& format, const std::vector<Tool>& tools,
                                                 bool starts_in_thinking) {
  if (format.tools == ToolSyntax::kHarmony) return make_harmony_parser(tools);
  return std::make_unique<StreamParser>(format, tools, starts_in_thinking);
}

}  // namespace hocket
