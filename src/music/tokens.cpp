#include "music/tokens.h"

#include "base/utf8.h"

namespace hocket {

Result<std::unique_ptr<MusicTokenizer>> MusicTokenizer::load(const Metadata& metadata) {
  Tokenizer::LoadOptions options;
  options.force_pre = "qwen2";  // the files name none
  TRY_ASSIGN(auto tokenizer, Tokenizer::load(metadata, options));
  return std::unique_ptr<MusicTokenizer>(new MusicTokenizer(std::move(tokenizer)));
}

Result<std::vector<TokenId>> MusicTokenizer::encode(std::string_view text, bool append_end) const {
  constexpr std::string_view kEndText = "<|endoftext|>";
  std::vector<TokenId> ids;
  for (;;) {
    const std::size_t at = text.find(kEndText);
    const std::string_view run = text.substr(0, at);
    if (!run.empty()) {
      TRY_ASSIGN(const std::vector<TokenId> part, tokenizer_->encode(run, {false, false}));
      ids.insert(ids.end(), part.begin(), part.end());
    }
    if (at == std::string_view::npos) break;
    ids.push_back(kEndOfText);
    text.remove_prefix(at + kEndText.size());
  }
  if (append_end) ids.push_back(kEndOfText);
  return ids;
}

std::string MusicTokenizer::piece(TokenId id) const {
  if (id == kThink) return "<think>";
  if (id == kEndThink) return "</think>";
  return id < kEndOfText ? tokenizer_->piece(id) : std::string();
}

std::string MusicTokenizer::decode(const std::vector<TokenId>& ids) const {
  std::string text;
  for (const TokenId id : ids) text += piece(id);
  return repair_utf8(text);
}

}  // namespace hocket
