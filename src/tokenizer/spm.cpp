#include "tokenizer/spm.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "tokenizer/byte_fallback.h"
#include "tokenizer/merge_symbols.h"
#include "tokenizer/piece_memo.h"
#include "tokenizer/spaces.h"

namespace hocket {
namespace {

constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";

// The rank of each token: 0 for the highest score; equal scores share a rank.
Result<std::vector<int32_t>> read_ranks(const Metadata& metadata, const Vocabulary& vocabulary) {
  TRY_ASSIGN(const std::vector<double>* scores, metadata.numbers(kScoresKey));
  if (scores == nullptr) return Error(ErrorCode::kBadModel, "the file has no scores", std::string(kScoresKey));
  if (scores->size() != vocabulary.size()) {
    return Error(ErrorCode::kBadModel, fmt::format("{} scores for {} tokens", scores->size(), vocabulary.size()),
                 std::string(kScoresKey));
  }
  std::vector<double> distinct = *scores;
  std::sort(distinct.begin(), distinct.end(), std::greater<>());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int32_t> ranks;
  ranks.reserve(scores->size());
  for (const double score : *scores) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), score, std::greater<>());
    ranks.push_back(static_cast<int32_t>(at - distinct.begin()));
  }
  return ranks;
}

// The characters after which some token goes on with a visible space. After any other one no merge can join a visible
// space, so that words are independent of each other.
std::unordered_set<char32_t> characters_before_spaces(const Vocabulary& vocabulary) {
  std::unordered_set<char32_t> out{kVisibleSpaceCharacter};
  for (const std::string_view text : vocabulary.texts) {
    char32_t last = kVisibleSpaceCharacter;
    for (std::size_t i = text.find(kVisibleSpace, 1) == std::string_view::npos ? text.size() : 0; i < text.size();) {
      const Utf8Char c = decode_utf8(text.substr(i));
      if (c.code_point == kVisibleSpaceCharacter) out.insert(last);
      last = c.code_point;
      i += c.n_bytes;
    }
  }
  return out;
}

class Spm : public TokenModel {
 public:
  Spm(const Vocabulary& vocabulary, std::vector<int32_t> ranks, bool add_space_prefix)
      : vocabulary_(&vocabulary),
        ranks_(std::move(ranks)),
        add_space_prefix_(add_space_prefix),
        before_spaces_(characters_before_spaces(vocabulary)),
        bytes_(vocabulary) {
    if (bytes_.n_missing() > 0)
      log_warn("{} of 256 bytes have no token in this vocabulary; text that needs them loses them", bytes_.n_missing());
  }

  Result<void> encode(std::string_view text, bool after_special, std::vector<TokenId>& out) const override {
    std::string visible = add_space_prefix_ && after_special ? std::string(kVisibleSpace) : std::string();
    visible += with_visible_spaces(text);
    const std::string_view view = visible;
    MergeScratch scratch;
    PieceMemo memo;
    std::size_t begin = 0;
    const auto end_word = [&](std::size_t end) {
      const std::string_view word = view.substr(begin, end - begin);
      memo.append(word, out, [&] { encode_word(word, scratch, out); });
      scratch.clear();
      begin = end;
    };
    char32_t last = kVisibleSpaceCharacter;
    for (std::size_t i = 0; i < view.size();) {
      const Utf8Char c = decode_utf8(view.substr(i));
      if (c.code_point == kVisibleSpaceCharacter && before_spaces_.count(last) == 0) end_word(i);
      scratch.add(-1, static_cast<uint32_t>(i - begin), static_cast<uint32_t>(c.n_bytes));
      last = c.code_point;
      i += c.n_bytes;
    }
    end_word(view.size());
    return {};
  }

  std::string bytes_of(std::string_view stored) const override { return with_plain_spaces(stored); }
  bool adds_leading_space() const override { return add_space_prefix_; }

 private:
  // scratch holds the characters of the word.
  void encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
    merge_symbols(scratch, [&](const MergeSymbol& left, const MergeSymbol& right) -> RankedSymbol {
      const std::size_t n_bytes = left.n_bytes + right.n_bytes;
      if (n_bytes > vocabulary_->max_text_bytes) return {};
      const TokenId id = vocabulary_->find(word.substr(left.begin, n_bytes));
      return id == kNoToken ? RankedSymbol{} : RankedSymbol{ranks_[static_cast<std::size_t>(id)], id};
    });
    for (int32_t i = 0; i >= 0;) {
      const MergeSymbol& symbol = scratch.symbols[static_cast<std::size_t>(i)];
      const std::string_view part = word.substr(symbol.begin, symbol.n_bytes);
      const TokenId id = symbol.symbol >= 0 ? symbol.symbol : vocabulary_->find(part);  // −1: a single character
      if (id != kNoToken)
        out.push_back(id);
      else
        bytes_.append(part, out);
      i = symbol.right;
    }
  }

  const Vocabulary* vocabulary_;
  std::vector<int32_t> ranks_;
  bool add_space_prefix_;
  std::unordered_set<char32_t> before_spaces_;
  ByteFallback bytes_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_spm(const Metadata& metadata, const Vocabulary& vocabulary) {
  TRY_ASSIGN(auto ranks, read_ranks(metadata, vocabulary));
  TRY_ASSIGN(const bool add_space_prefix, metadata.boolean_or("tokenizer.ggml.add_space_prefix", true));
  return std::unique_ptr<TokenModel>(std::make_unique<Spm>(vocabulary, std::move(ranks), add_space_prefix));
}

}  // namespace hocket
