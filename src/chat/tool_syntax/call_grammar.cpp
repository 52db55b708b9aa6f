#include "chat/tool_syntax/call_grammar.h"

#include <utility>

#include "chat/tool_syntax/argument_structure.h"

namespace hocket {
namespace {

using Kind = Structure::Kind;

// Messages before the one that counts: thinking, and remarks to the user.
Structure harmony_preamble() {
  const auto message = [](const char* channel) {
    return Structure::sequence({Structure::literal(std::string("<|channel|>") + channel + "<|message|>"),
                                Structure::until("<|end|>", {"<|start|>", "<|channel|>", "<|message|>"}),
                                Structure::literal("<|start|>assistant")});
  };
  return Structure::any(Structure::choice({message("analysis"), message("commentary")}));
}

Structure harmony_final(const Structure& content) {
  return Structure::sequence({Structure::literal("<|channel|>final<|message|>"), content});
}

}  // namespace

Structure harmony_content(const Structure& content) {
  return Structure::sequence({harmony_preamble(), harmony_final(content)});
}

Result<Structure> call_arguments(const ReplyFormat& format, const std::string& schema_json) {
  return format.tools == ToolSyntax::kLaidOut ? arguments_structure(format.layout, schema_json)
                                              : Result<Structure>(Structure::json(schema_json));
}

CallGrammar::CallGrammar(const ReplyFormat& format, const std::vector<CallText>& calls, bool one_call)
    : format_(format), calls_(calls), one_call_(one_call), syntax_(call_syntax(format)) {}

bool CallGrammar::has_trigger() const {
  return harmony() || !syntax_.trigger.empty();
}

bool CallGrammar::has_lead() const {
  return has_trigger() || !syntax_.spelling.lead.empty();
}

// Everything of one call behind `lead`.
Structure CallGrammar::call(const std::string& lead) const {
  const CallSpelling& s = syntax_.spelling;
  std::vector<Structure> options;
  for (const CallText& text : calls_) {
    if (harmony()) {
      // The recipient may stand before the channel, too; then the channel follows here.
      Structure json = Structure::choice({Structure::literal(" <|constrain|>json<|message|>"),
                                          Structure::literal(" json<|message|>"), Structure::literal("<|message|>")});
      options.push_back(Structure::sequence({Structure::literal(lead + text.name), std::move(json), text.arguments}));
      continue;
    }
    std::vector<Structure> parts;
    if (format_.tools == ToolSyntax::kLaidOut && format_.layout.numbered) {
      parts = {Structure::literal(lead + text.name + ":"), Structure::of(Kind::kPattern, "[0-9]{1,3}"),
               Structure::literal(s.name_close)};
    } else {
      parts = {Structure::literal(lead + text.name + s.name_close)};
    }
    parts.push_back(text.arguments);
    parts.push_back(Structure::literal(s.trail));
    options.push_back(Structure::sequence(std::move(parts)));
  }
  return Structure::choice(std::move(options));
}

Structure CallGrammar::plain_calls() const {
  const CallSpelling& s = syntax_.spelling;
  // Calls that share what is around them are one part; the others follow each other.
  const bool shared = !s.shared_lead.empty();
  std::vector<Structure> parts{Structure::literal(s.shared_lead), call(s.lead)};
  if (!one_call_ && shared) parts.push_back(Structure::any(call(s.separator + s.lead)));
  parts.push_back(Structure::literal(s.shared_trail));
  Structure all = Structure::sequence(std::move(parts));
  if (one_call_ || shared) return all;
  const Structure next = call(s.separator + s.lead);
  return Structure::sequence(
      {std::move(all), Structure::any(Structure::sequence({Structure::of(Kind::kPattern, "\\n?"), next}))});
}

Structure CallGrammar::calls() const {
  if (!harmony()) return plain_calls();
  return Structure::sequence({harmony_preamble(), call(syntax_.spelling.lead)});
}

Structure CallGrammar::calls_or(const Structure& content) const {
  if (harmony()) {
    return Structure::sequence(
        {harmony_preamble(), Structure::choice({call(syntax_.spelling.lead), harmony_final(content)})});
  }
  if (format_.tools == ToolSyntax::kRecipient) {
    return Structure::choice({plain_calls(), Structure::sequence({Structure::literal("all\n"), content})});
  }
  return Structure::choice({plain_calls(), content});
}

Structure CallGrammar::optional_calls() const {
  if (harmony()) {
    const std::string& lead = syntax_.spelling.lead;
    const std::string role = "<|start|>assistant to=functions.";
    std::vector<Structure> before_channel;
    for (const CallText& text : calls_) {
      before_channel.push_back(Structure::sequence(
          {Structure::literal(text.name + "<|channel|>commentary"),
           Structure::choice({Structure::literal(" <|constrain|>json<|message|>"),
                              Structure::literal(" json<|message|>"), Structure::literal("<|message|>")}),
           text.arguments}));
    }
    return Structure::free({lead, role}, {call(""), Structure::choice(std::move(before_channel))}, true);
  }
  const CallSpelling& s = syntax_.spelling;
  const std::string before = s.shared_lead + s.lead;
  const std::string& trigger = syntax_.trigger.empty() ? before : syntax_.trigger;
  const std::string rest = before.substr(trigger.size());
  if (s.shared_lead.empty()) return Structure::free({trigger}, {call(rest)}, one_call_);
  std::vector<Structure> parts{call(rest)};
  if (!one_call_) parts.push_back(Structure::any(call(s.separator + s.lead)));
  parts.push_back(Structure::literal(s.shared_trail));
  return Structure::free({trigger}, {Structure::sequence(std::move(parts))}, true);
}

}  // namespace hocket
