#include "tokenizer/pretokenizer.h"

#include <map>

// Sources: the pre_tokenizer sections of the models' tokenizer.json files, in the form in which GGUF models were made
// to be used with. Two habits of that form are kept because model files rely on them:
// - where an original class lists sub-categories of letters, every letter matches (only ASCII case is told apart);
// - white space beyond ASCII belongs to no explicit code-point range.
// Letters with a condition are written as one negated class, so that matching keeps no state per character.

// clang-format off
#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define WORD        R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define WORD_MARKS  R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)"
#define SYMBOLS     R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define SYMBOLS_SL  R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"
#define NEWLINES    R"(\s*[\r\n]+)"
#define SPACES      R"(\s+(?!\S)|\s+)"
#define NOT_AZ      R"([^\P{L}a-z])"  // a letter, but no ASCII lower-case one
#define NOT_AZ_UP   R"([^\P{L}A-Z])"
#define MARK_NOT_AZ    R"([^\p{N}\p{P}\p{S}\p{Z}\p{C}a-z])"  // the same of letters and marks
#define MARK_NOT_AZ_UP R"([^\p{N}\p{P}\p{S}\p{Z}\p{C}A-Z])"
#define PREFIX      R"([^\r\n\p{L}\p{N}]?)"
#define CASED(upper, lower, tail) \
  PREFIX upper "*" lower "+" tail "|" PREFIX upper "+" lower "*" tail
#define ASCII_PUNCT R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
#define HAN \
  R"(\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F})" \
  R"(\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F})"
#define CJK_KANA    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"
#define HANGUL      R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
#define CJK_PUNCT \
  R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C})" \
  R"(\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
// U+0800–U+4E00 without the white space in it.
#define CJK_WIDE \
  R"([\x{4E00}-\x{9FA5}\x{800}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E})" \
  R"(\x{2060}-\x{2FFF}\x{3001}-\x{4E00}\x{AC00}-\x{D7FF}]+)"
#define CASED_LETTERS \
  R"([A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})" \
  R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})" \
  R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})" \
  R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})" \
  R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})" \
  R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})" \
  R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})" \
  R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})" \
  R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})" \
  R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})" \
  R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})" \
  R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})" \
  R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})" \
  R"(\x{1E900}-\x{1E943}])"
#define AFMOE_SCRIPTS \
  R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})" \
  R"(\x{2F00}-\x{2FDF}\x{E00}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})" \
  R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)"
// clang-format on

namespace hocket {
namespace {

constexpr const char* kLlama3 = CONTRACTION "|" WORD R"(|\p{N}{1,3}|)" SYMBOLS "|" NEWLINES "|" SPACES;
constexpr const char* kQwen2 = CONTRACTION "|" WORD R"(|\p{N}|)" SYMBOLS "|" NEWLINES "|" SPACES;
constexpr const char* kQwen35 = CONTRACTION
    "|"
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" NEWLINES "|" SPACES;
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr const char* kTekken = CASED(NOT_AZ, NOT_AZ_UP, "") R"(|\p{N}|)" SYMBOLS_SL "|" NEWLINES "|" SPACES;
constexpr const char* kGpt4o =
    CASED(NOT_AZ, NOT_AZ_UP, CONTRACTION "?") R"(|\p{N}{1,3}|)" SYMBOLS_SL "|" NEWLINES "|" SPACES;
constexpr const char* kGpt4oMarks =
    CASED(MARK_NOT_AZ, MARK_NOT_AZ_UP, CONTRACTION "?") R"(|\p{N}{1,3}|)" SYMBOLS_SL "|" NEWLINES "|" SPACES;
constexpr const char* kDeepseekV3 =
    ASCII_PUNCT R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" NEWLINES "|" SPACES;
constexpr const char* kMarkedWords = WORD_MARKS CONTRACTION R"(?|\p{N}{1,3}|)" SYMBOLS_SL "|" NEWLINES "|" SPACES;
constexpr const char* kMarkedWordsOneDigit = WORD_MARKS CONTRACTION R"(?|\p{N}|)" SYMBOLS_SL "|" NEWLINES "|" SPACES;
constexpr const char* kKimiK2 =
    "[" HAN "]+|" PREFIX R"([^\P{L})" HAN "]+" CONTRACTION R"(?|\p{N}{1,3}|)" SYMBOLS "|" NEWLINES "|" SPACES;
constexpr const char* kSeedCoder = CONTRACTION "|" WORD R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" NEWLINES "|" SPACES;
// Words joined by single spaces are one piece here.
constexpr const char* kExaoneMoe =
    CONTRACTION "|" PREFIX R"(\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|)" SPACES;
constexpr const char* kK2Horizon =
    CONTRACTION "|" PREFIX R"([\p{L}\p{M}\x{200C}\x{200D}]+|\p{N}{1,3}|)" SYMBOLS R"(|\s*[\r\n]|)" SPACES;
constexpr const char* kJais2 = CONTRACTION "|" WORD R"(|\p{N}{1,3}|)" SYMBOLS "|" NEWLINES
                                           R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
                                           R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr const char* kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

enum Flags : unsigned { kNone = 0, kIgnoreMerges = 1, kAddBos = 2, kNoDefaultBos = 4, kRawText = 8 };

constexpr const char* kGroupDigits = nullptr;  // stands for SplitRule::Kind::kDigitGroups in a list

struct Entry {
  std::vector<const char*> names;
  std::vector<const char*> rules;
  unsigned flags = kNone;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {kLlama3},
       kIgnoreMerges | kAddBos},
      {{"glm4"}, {kLlama3}, kIgnoreMerges | kNoDefaultBos},
      {{"chatglm-bpe"}, {kLlama3}, kNoDefaultBos},
      {{"dbrx", "smaug-bpe"}, {kLlama3}},
      {{"minicpm5"}, {R"(\p{N}{1,3})", kLlama3}, kIgnoreMerges},
      {{"jais-2"}, {kJais2}},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
        "bailingmoe", "bailingmoe2", "llada-moe"},
       {kQwen2}},
      {{"qwen35"}, {kQwen35}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum",
        "modern-bert", "exaone4", "jina-v2-code", "jina-v2-es", "jina-v2-de", "jina-es", "jina-de", "jina-v1-en",
        "roberta-bpe"},
       {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {R"(\p{N})", kGpt2}},
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
      {{"deepseek-llm"},
       {R"([\r\n])", R"(\s?)" CASED_LETTERS "+",
        R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}-\x{3002}]+)",
        // Only the start of a run of white space can begin a match that reaches the end.
        R"((?<!\s)\s++\z)", CJK_WIDE, R"(\p{N}+)"}},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", CJK_WIDE, R"(\p{N})"}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {R"(\p{N}{1,3})", CJK_KANA, kDeepseekV3}},
      {{"tekken"}, {kTekken}, kIgnoreMerges | kAddBos},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kGpt4o}},
      {{"granite-embed-multi-97m"}, {kGpt4oMarks}, kIgnoreMerges},
      {{"kimi-k2"}, {kKimiK2}},
      {{"youtu"}, {HANGUL "|" CJK_PUNCT R"(|[\x{3105}-\x{312F}]+|)" CJK_KANA, kMarkedWordsOneDigit}, kIgnoreMerges},
      {{"tiny_aya"}, {kGroupDigits, kMarkedWords}},
      {{"superbpe"}, {R"(\p{N}+)", kGroupDigits}},
      {{"afmoe"}, {R"(\p{N}+)", kGroupDigits, AFMOE_SCRIPTS, kDeepseekV3}},
      {{"seed-coder"}, {kSeedCoder}},
      {{"exaone-moe"}, {kExaoneMoe}},
      {{"k2-horizon"}, {kK2Horizon}},
      {{"bloom", "gpt3-finnish", "poro-chat"}, {kBloom}},
      {{"viking"}, {kBloom, R"(\p{N})"}},
      {{"gemma4"}, {R"([^\n]+|[\n]+)"}, kRawText | kAddBos},
      {{"sarvam-moe"}, {R"([^\n]+|[\n]+)"}, kRawText},
  };
  return table;
}

using Index = std::map<std::string_view, const Entry*>;

const Index& index() {
  static const Index by_name = [] {
    Index out;
    for (const Entry& entry : entries())
      for (const char* name : entry.names) out.emplace(name, &entry);
    return out;
  }();
  return by_name;
}

}  // namespace

std::optional<Pretokenizer> find_pretokenizer(std::string_view name) {
  const auto found = index().find(name);
  if (found == index().end()) return std::nullopt;
  const Entry& entry = *found->second;
  Pretokenizer out;
  for (const char* rule : entry.rules) {
    if (rule == kGroupDigits)
      out.rules.push_back({SplitRule::Kind::kDigitGroups, {}});
    else
      out.rules.push_back({SplitRule::Kind::kRegex, rule});
  }
  out.ignore_merges = (entry.flags & kIgnoreMerges) != 0;
  out.add_bos = (entry.flags & kAddBos) != 0;
  out.default_bos = (entry.flags & kNoDefaultBos) == 0;
  out.raw_text = (entry.flags & kRawText) != 0;
  return out;
}

std::vector<std::string_view> pretokenizer_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : index()) names.push_back(name);
  return names;
}

}  // namespace hocket
