#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/log.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_fallback.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/raw_bpe.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/special_roles.h"
#include "tokenizer/spm.h"
#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"

namespace hocket {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::size_t kMaxTextBytes = 256u << 20;  // places in a text are 32 bits wide, spaces may take three bytes

struct Family {
  std::string kind;
  std::string pre;  // "" when the kind has none
  Pretokenizer rules;
};

Result<Family> read_family(const Metadata& metadata, const std::string& force_pre) {
  Family family;
  TRY_ASSIGN(family.kind, metadata.string(kModelKey));
  if (family.kind == "llama" || family.kind == "gemma4") {
    if (!force_pre.empty()) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("a tokenizer of kind \"{}\" has no pre-tokenizer to replace", family.kind), "force_pre");
    }
    return family;
  }
  if (family.kind != "gpt2") {
    return Error(ErrorCode::kUnsupported, fmt::format("tokenizers of kind \"{}\" are not supported", family.kind),
                 std::string(kModelKey));
  }
  if (!force_pre.empty()) {
    family.pre = force_pre;
  } else if (metadata.has(kPreKey)) {
    TRY_ASSIGN(family.pre, metadata.string(kPreKey));
  } else {
    log_warn("the file does not name its pre-tokenizer ({}): \"default\" is used, and the model may read text badly",
             kPreKey);
    family.pre = "default";
  }
  auto rules = find_pretokenizer(family.pre);
  if (!rules) {
    return Error(force_pre.empty() ? ErrorCode::kUnsupported : ErrorCode::kInvalid,
                 fmt::format("the pre-tokenizer \"{}\" is not known", family.pre),
                 force_pre.empty() ? std::string(kPreKey) : "force_pre");
  }
  family.rules = *std::move(rules);
  return family;
}

SpecialTokens default_roles(const Family& family) {
  SpecialTokens special;
  if (family.kind == "llama") {
    special.bos = 1;
    special.eos = 2;
    special.unk = 0;
    special.add_bos = true;
  } else {
    special.bos = family.rules.default_bos ? 11 : kNoToken;
    special.eos = 11;
    special.add_bos = family.rules.add_bos || family.kind == "gemma4";
  }
  return special;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// White space beside special tokens is dropped for a few models, which are known by name only.
void set_strips(const Metadata& metadata, const Family& family, std::vector<SpecialText>& tokens) {
  std::string name = metadata.string_or("general.name", "").ok() ? *metadata.string_or("general.name", "") : "";
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool phi3 = contains(name, "phi-3") || contains(name, "phi3");
  for (SpecialText& token : tokens) {
    if (phi3) token.strip_right = token.text != "<unk>" && token.text != "<s>" && token.text != "<|endoftext|>";
    if (contains(family.pre, "jina-v2-") && token.text == "<mask>") token.strip_left = true;
    if (family.pre == "modern-bert" && token.text == "[MASK]") token.strip_left = true;
  }
}

std::vector<SpecialText> special_texts(const Metadata& metadata, const Family& family, const Vocabulary& vocabulary) {
  std::vector<SpecialText> tokens;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    if (type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown)
      tokens.push_back({static_cast<TokenId>(id), vocabulary.texts[id], false, false});
  }
  set_strips(metadata, family, tokens);
  return tokens;
}

std::vector<SpecialText> only_user_defined(const std::vector<SpecialText>& tokens, const Vocabulary& vocabulary) {
  std::vector<SpecialText> out;
  for (const SpecialText& token : tokens)
    if (vocabulary.types[static_cast<std::size_t>(token.id)] == TokenType::kUserDefined) out.push_back(token);
  return out;
}

}  // namespace

struct Tokenizer::Parts {
  std::string kind;
  std::string pre;
  std::unique_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<const TokenModel> model;
  SpecialMatcher all_special;
  SpecialMatcher user_defined;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const Metadata& metadata, const LoadOptions& options) {
  TRY_ASSIGN(const Family family, read_family(metadata, options.force_pre));
  TRY_ASSIGN(std::unique_ptr<Vocabulary> vocabulary, read_vocabulary(metadata));
  TRY(assign_special_roles(metadata, default_roles(family), *vocabulary));
  TRY_ASSIGN(const bool nfc, metadata.boolean_or("tokenizer.ggml.normalizer.nfc", false));
  if (nfc) log_warn("this vocabulary expects text in Unicode's NFC form; text is encoded as it is given");

  std::unique_ptr<TokenModel> model;
  if (family.kind == "llama") {
    TRY_ASSIGN(model, make_spm(metadata, *vocabulary));
  } else if (family.kind == "gemma4" || family.rules.raw_text) {
    TRY_ASSIGN(model, make_raw_bpe(metadata, *vocabulary));
  } else {
    TRY_ASSIGN(model, make_byte_bpe(metadata, family.rules, *vocabulary));
  }
  std::vector<SpecialText> special = special_texts(metadata, family, *vocabulary);
  SpecialMatcher user_defined(only_user_defined(special, *vocabulary));
  auto parts = std::make_unique<Parts>(Parts{family.kind, family.pre, std::move(vocabulary), std::move(model),
                                             SpecialMatcher(std::move(special)), std::move(user_defined)});
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("a text of {} bytes; at most {} can be encoded", text.size(), kMaxTextBytes));
  }
  const SpecialTokens& roles = special();
  std::vector<TokenId> out;
  if (options.add_special && roles.add_bos && roles.bos != kNoToken) out.push_back(roles.bos);
  const std::size_t n_added = out.size();
  const SpecialMatcher& matcher = options.parse_special ? parts_->all_special : parts_->user_defined;
  bool after_special = true;
  for (const Fragment& fragment : matcher.partition(text)) {
    if (fragment.id != kNoToken) {
      out.push_back(fragment.id);
      after_special = true;
      continue;
    }
    TRY(parts_->model->encode(text.substr(fragment.begin, fragment.end - fragment.begin), after_special, out));
    after_special = false;
  }
  if (n_added == 1 && out.size() > 1 && out[1] == roles.bos)
    log_warn("the text itself begins with the beginning-of-sequence token that the vocabulary adds");
  if (options.add_special && roles.add_eos && roles.eos != kNoToken) out.push_back(roles.eos);
  return out;
}

std::string Tokenizer::piece(TokenId id, bool special) const {
  if (!valid_id(id)) return {};
  const std::string& stored = text(id);
  switch (type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return special ? stored : std::string();
    case TokenType::kUserDefined:
      return stored;
    case TokenType::kUnused:
      return {};
    case TokenType::kByte:
      if (const auto byte = byte_of_token(stored)) return std::string(1, static_cast<char>(*byte));
      break;
    case TokenType::kNormal:
      break;
  }
  return parts_->model->bytes_of(stored);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool special) const {
  std::string out;
  std::size_t i = 0;
  const TokenId bos = this->special().bos;
  if (!ids.empty() && bos != kNoToken && ids[0] == bos) out = piece(ids[i++], special);
  bool strip = parts_->model->adds_leading_space();
  for (; i < ids.size(); ++i) {
    std::string next = piece(ids[i], special);
    if (strip && !next.empty() && next[0] == ' ') next.erase(0, 1);
    strip = false;
    out += next;
  }
  return out;
}

std::size_t Tokenizer::size() const {
  return parts_->vocabulary->size();
}
const std::string& Tokenizer::text(TokenId id) const {
  CHECK(valid_id(id));
  return parts_->vocabulary->texts[static_cast<std::size_t>(id)];
}
TokenType Tokenizer::type(TokenId id) const {
  CHECK(valid_id(id));
  return parts_->vocabulary->types[static_cast<std::size_t>(id)];
}
std::optional<TokenId> Tokenizer::find(std::string_view text) const {
  const TokenId id = parts_->vocabulary->find(text);
  return id == kNoToken ? std::nullopt : std::optional<TokenId>(id);
}
const SpecialTokens& Tokenizer::special() const {
  return parts_->vocabulary->special;
}
bool Tokenizer::is_end_of_generation(TokenId id) const {
  const std::vector<TokenId>& ends = end_of_generation();
  return std::binary_search(ends.begin(), ends.end(), id);
}
const std::vector<TokenId>& Tokenizer::end_of_generation() const {
  return parts_->vocabulary->end_of_generation;
}
const std::vector<TokenId>& Tokenizer::suppressed() const {
  return parts_->vocabulary->suppressed;
}
std::string_view Tokenizer::kind() const {
  return parts_->kind;
}
std::string_view Tokenizer::pre() const {
  return parts_->pre;
}

}  // namespace hocket
