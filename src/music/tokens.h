// music/tokens.h: text and token ids of ACE-Step models.
//
// The vocabularies of the files end before the special tokens, whose ids are constants; of special texts only the end
// of text is recognised. Runs of text between special ids are encoded one by one.
//
// Owns     the tokenizer.
// Threads  const after load.
// Errors   load(): kBadModel naming the key. encode(): kInvalid for texts beyond the tokenizer's limits.
// Source   ace-step.md §4, Appendix C.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

inline constexpr TokenId kEndOfText = 151'643;
inline constexpr TokenId kTurnStart = 151'644;  // im_start
inline constexpr TokenId kTurnEnd = 151'645;    // im_end
inline constexpr TokenId kThink = 151'667;
inline constexpr TokenId kEndThink = 151'668;
inline constexpr TokenId kFirstAudioCode = 151'669;
inline constexpr int64_t kAudioCodeIds = 65'535;

class MusicTokenizer {
 public:
  static Result<std::unique_ptr<MusicTokenizer>> load(const Metadata& metadata);

  // `append_end`: kEndOfText behind the whole text.
  Result<std::vector<TokenId>> encode(std::string_view text, bool append_end = false) const;
  // The bytes of one token; the two think marks by their text, other special ids as nothing.
  std::string piece(TokenId id) const;
  // Valid UTF-8: what the model left unfinished becomes U+FFFD.
  std::string decode(const std::vector<TokenId>& ids) const;

 private:
  explicit MusicTokenizer(std::unique_ptr<Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace hocket
