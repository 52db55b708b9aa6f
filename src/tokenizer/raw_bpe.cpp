#include "tokenizer/raw_bpe.h"

#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "tokenizer/byte_fallback.h"
#include "tokenizer/merge_rules.h"
#include "tokenizer/merge_symbols.h"
#include "tokenizer/spaces.h"

namespace hocket {
namespace {

class RawBpe : public TokenModel {
 public:
  RawBpe(const Vocabulary& vocabulary, std::unique_ptr<MergeRules> merges)
      : vocabulary_(&vocabulary), merges_(std::move(merges)), bytes_(vocabulary) {
    if (bytes_.n_missing() > 0)
      log_warn("{} of 256 bytes have no token in this vocabulary; text that needs them loses them", bytes_.n_missing());
  }

  Result<void> encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    const std::string visible = with_visible_spaces(text);
    MergeScratch scratch;
    for (std::size_t begin = 0; begin < visible.size();) {
      const bool newlines = visible[begin] == '\n';
      std::size_t end = newlines ? visible.find_first_not_of('\n', begin) : visible.find('\n', begin);
      if (end == std::string::npos) end = visible.size();
      const std::string_view piece = std::string_view(visible).substr(begin, end - begin);
      const TokenId whole = newlines ? vocabulary_->find(piece) : kNoToken;
      if (whole != kNoToken)
        out.push_back(whole);
      else
        encode_piece(piece, scratch, out);
      begin = end;
    }
    return {};
  }

  std::string bytes_of(std::string_view stored) const override { return with_plain_spaces(stored); }

 private:
  void encode_piece(std::string_view piece, MergeScratch& scratch, std::vector<TokenId>& out) const {
    scratch.clear();
    for (std::size_t i = 0; i < piece.size();) {
      const std::size_t n = decode_utf8(piece.substr(i)).n_bytes;
      scratch.add(merges_->symbol(piece.substr(i, n)), static_cast<uint32_t>(i), static_cast<uint32_t>(n));
      i += n;
    }
    merge_symbols(scratch, [this](const MergeSymbol& left, const MergeSymbol& right) {
      return merges_->find(left.symbol, right.symbol);
    });
    for (int32_t i = 0; i >= 0;) {
      const MergeSymbol& symbol = scratch.symbols[static_cast<std::size_t>(i)];
      if (merges_->is_token(symbol.symbol))
        out.push_back(symbol.symbol);
      else
        bytes_.append(piece.substr(symbol.begin, symbol.n_bytes), out);
      i = symbol.right;
    }
  }

  const Vocabulary* vocabulary_;
  std::unique_ptr<MergeRules> merges_;
  ByteFallback bytes_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_raw_bpe(const Metadata& metadata, const Vocabulary& vocabulary) {
  TRY_ASSIGN(auto merges, MergeRules::read(metadata, vocabulary));
  return std::unique_ptr<TokenModel>(std::make_unique<RawBpe>(vocabulary, std::move(merges)));
}

}  // namespace hocket
