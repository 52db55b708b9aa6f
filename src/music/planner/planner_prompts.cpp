#include "music/planner/planner_prompts.h"

#include <fmt/format.h>

namespace hocket {
namespace {

constexpr std::string_view kGenerate = "Generate audio semantic tokens based on the given conditions:";
constexpr std::string_view kInspire = "Expand the user's input into a more detailed and specific musical description:";
constexpr std::string_view kFormat = "Format the user's input into a more detailed and specific musical description:";
constexpr std::string_view kUnderstand =
    "Understand the given musical conditions and describe the audio semantics accordingly:";

// Collects runs of text, each encoded alone, and special ids; the first error is kept.
class Prompt {
 public:
  explicit Prompt(const MusicTokenizer& tokenizer) : tokenizer_(tokenizer) {}
  Prompt& text(const std::string& text) {
    const auto ids = tokenizer_.encode(text);
    if (!ids.ok()) {
      if (status_.ok()) status_ = ids.error();
    } else {
      ids_.insert(ids_.end(), ids->begin(), ids->end());
    }
    return *this;
  }
  Prompt& id(TokenId id) {
    ids_.push_back(id);
    return *this;
  }
  Prompt& system(std::string_view instruction) {
    return id(kTurnStart).text(fmt::format("system\n# Instruction\n{}\n\n", instruction)).id(kTurnEnd).text("\n");
  }
  Prompt& user(const std::string& content) { return id(kTurnStart).text("user\n" + content).id(kTurnEnd).text("\n"); }
  Prompt& assistant() { return id(kTurnStart).text("assistant\n"); }
  Result<TokenIds> done() {
    TRY(status_);
    return std::move(ids_);
  }

 private:
  const MusicTokenizer& tokenizer_;
  TokenIds ids_;
  Result<void> status_;
};

std::string caption_and_lyrics(const std::string& caption, const std::string& lyrics) {
  return fmt::format("# Caption\n{}\n\n# Lyric\n{}\n", caption, lyrics);
}

std::string wrapped_caption(const std::string& caption) {
  constexpr std::size_t kColumns = 80;
  std::string out = "caption:";
  std::size_t column = out.size();
  std::string_view rest = caption;
  if (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  for (;;) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    if (column > kColumns) {
      out += "\n  ";
      column = 2;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    if (space == std::string_view::npos) break;
    rest.remove_prefix(space + 1);
  }
  return out + "\n";
}

}  // namespace

std::string metadata_yaml(const MusicRequest& request) {
  std::string yaml;
  if (request.bpm > 0) yaml += fmt::format("bpm: {}\n", request.bpm);
  if (!request.caption.empty()) yaml += wrapped_caption(request.caption);
  if (request.duration > 0) yaml += fmt::format("duration: {}\n", static_cast<int>(request.duration));
  if (!request.keyscale.empty()) yaml += fmt::format("keyscale: {}\n", request.keyscale);
  if (!request.vocal_language.empty()) yaml += fmt::format("language: {}\n", request.vocal_language);
  if (!request.timesignature.empty()) yaml += fmt::format("timesignature: {}\n", request.timesignature);
  return yaml;
}

Result<TokenIds> fill_prompt(const MusicTokenizer& tokenizer, const std::string& caption, const std::string& lyrics) {
  return Prompt(tokenizer).system(kGenerate).user(caption_and_lyrics(caption, lyrics)).assistant().done();
}

Result<TokenIds> fill_unconditional_prompt(const MusicTokenizer& tokenizer, const std::string& negative,
                                           const std::string& lyrics) {
  const std::string content =
      negative.empty() ? fmt::format("# Lyric\n{}\n", lyrics) : caption_and_lyrics(negative, lyrics);
  return Prompt(tokenizer).system(kGenerate).user(content).assistant().done();
}

Result<TokenIds> inspire_prompt(const MusicTokenizer& tokenizer, const std::string& caption,
                                const std::string& lyrics) {
  const bool instrumental = lyrics == kInstrumental;
  return Prompt(tokenizer)
      .system(kInspire)
      .user(caption + (instrumental ? "\n\ninstrumental: true\n" : "\n"))
      .assistant()
      .done();
}

Result<TokenIds> format_prompt(const MusicTokenizer& tokenizer, const std::string& caption, const std::string& lyrics) {
  return Prompt(tokenizer).system(kFormat).user(caption_and_lyrics(caption, lyrics)).assistant().done();
}

Result<TokenIds> with_thinking(const MusicTokenizer& tokenizer, TokenIds prompt) {
  TRY_ASSIGN(const TokenIds opening, Prompt(tokenizer).id(kThink).text("\n").done());
  prompt.insert(prompt.end(), opening.begin(), opening.end());
  return prompt;
}

Result<TokenIds> codes_prompt(const MusicTokenizer& tokenizer, const MusicRequest& request) {
  return Prompt(tokenizer)
      .system(kGenerate)
      .user(caption_and_lyrics(request.caption, request.lyrics))
      .assistant()
      .id(kThink)
      .text("\n" + metadata_yaml(request))
      .id(kEndThink)
      .text("\n\n")
      .done();
}

Result<TokenIds> codes_unconditional_prompt(const MusicTokenizer& tokenizer, const std::string& negative) {
  return Prompt(tokenizer)
      .system(kGenerate)
      .user(negative)
      .assistant()
      .id(kThink)
      .text("\n\n")
      .id(kEndThink)
      .text("\n\n")
      .done();
}

Result<TokenIds> understand_prompt(const MusicTokenizer& tokenizer, std::span<const int32_t> codes) {
  Prompt prompt(tokenizer);
  prompt.system(kUnderstand).id(kTurnStart).text("user\n");
  for (const int32_t code : codes) prompt.id(kFirstAudioCode + code);
  return prompt.text("\n").id(kTurnEnd).text("\n").assistant().done();
}

}  // namespace hocket
