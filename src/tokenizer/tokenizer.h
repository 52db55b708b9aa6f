// tokenizer/tokenizer.h: text ↔ token ids.
//
// Built from the tokenizer.ggml.* keys of a model file. Kinds: byte-level BPE (`gpt2`, every pre-tokenizer name of
// pretokenizer.h), SPM (`llama`), raw-text BPE (`gemma4`). The rules and their sources are in docs/tokenizers.md.
//
// Owns     the vocabulary.
// Threads  const after load; every method from any thread.
// Errors   load(): kBadModel naming the key, kUnsupported for a kind or pre-tokenizer that is not known. encode():
// kInvalid
//          when the text passes a limit (256 MiB, or the splitter's).
// Cost     encode() O(n log n) in the bytes of the text whatever it contains.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/metadata.h"

namespace hocket {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

enum class TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// Ids with a role; kNoToken when the vocabulary has none.
struct SpecialTokens {
  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unk = kNoToken, sep = kNoToken,
          pad = kNoToken, mask = kNoToken;
  TokenId fim_prefix = kNoToken, fim_suffix = kNoToken, fim_middle = kNoToken, fim_pad = kNoToken, fim_rep = kNoToken,
          fim_sep = kNoToken;
  bool add_bos = false;
  bool add_eos = false;
};

struct EncodeOptions {
  bool add_special = true;     // BOS and EOS as the vocabulary asks
  bool parse_special = false;  // recognise the text of control tokens
};

class Tokenizer {
 public:
  struct LoadOptions {
    std::string force_pre;  // use this pre-tokenizer name instead of the file's
  };
  static Result<std::unique_ptr<Tokenizer>> load(const Metadata& metadata, const LoadOptions& options);
  static Result<std::unique_ptr<Tokenizer>> load(const Metadata& metadata) { return load(metadata, LoadOptions()); }
  ~Tokenizer();

  // Any bytes are accepted. Bytes that are no UTF-8 keep their place: they are split like U+FFFD and encoded as they
  // are.
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const;

  // The bytes that a token stands for; control and unknown tokens give "" unless `special`; "" for an id outside the
  // vocabulary. Not necessarily whole characters.
  std::string piece(TokenId id, bool special = false) const;
  // Text of a whole sequence: pieces joined, without the one leading space that an SPM vocabulary added.
  std::string decode(std::span<const TokenId> ids, bool special = false) const;

  std::size_t size() const;
  // As stored in the file, but for an empty text, which reads "[EMPTY_<id>]".
  const std::string& text(TokenId id) const;  // valid_id(id) only
  // As the vocabulary uses it: tokens with a role by their text (docs/tokenizers.md) may differ from the file.
  TokenType type(TokenId id) const;                          // valid_id(id) only
  std::optional<TokenId> find(std::string_view text) const;  // by stored text
  const SpecialTokens& special() const;
  bool is_end_of_generation(TokenId id) const;
  const std::vector<TokenId>& end_of_generation() const;  // ascending
  const std::vector<TokenId>& suppressed() const;         // never to be sampled; ascending
  std::string_view kind() const;                          // "gpt2", "llama", "gemma4"
  std::string_view pre() const;                           // pre-tokenizer name, "" when the kind has none
  bool valid_id(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

// Turns a growing sequence of tokens into text that never ends inside a character.
class DetokenizeStream {
 public:
  // `special`: show control tokens as their text.
  explicit DetokenizeStream(const Tokenizer& tokenizer, bool special = false)
      : tokenizer_(&tokenizer), special_(special) {}

  // The characters that this token completes; "" while one is still open.
  std::string push(TokenId id);
  // What is left; an unfinished character becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  std::string pending_;
};

}  // namespace hocket
