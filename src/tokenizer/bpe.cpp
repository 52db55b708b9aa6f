#include "tokenizer/bpe.h"

#include <array>
#include <utility>

#include "base/log.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_rules.h"
#include "tokenizer/merge_symbols.h"
#include "tokenizer/piece_memo.h"
#include "tokenizer/splitter.h"

namespace hocket {
namespace {

class ByteBpe : public TokenModel {
 public:
  ByteBpe(const Vocabulary& vocabulary, std::unique_ptr<MergeRules> merges, std::unique_ptr<Splitter> splitter,
          bool ignore_merges)
      : vocabulary_(&vocabulary),
        merges_(std::move(merges)),
        splitter_(std::move(splitter)),
        ignore_merges_(ignore_merges) {
    std::size_t n_missing = 0;
    const auto in_utf8 = [](std::size_t byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); };
    for (std::size_t byte = 0; byte < byte_symbols_.size(); ++byte) {
      byte_symbols_[byte] = merges_->symbol(byte_alphabet()[byte]);
      if (in_utf8(byte) && !merges_->is_token(byte_symbols_[byte])) ++n_missing;
      const char single = static_cast<char>(byte);
      single_byte_tokens_[byte] = vocabulary.find(std::string_view(&single, 1));
    }
    if (n_missing > 0)
      log_debug("{} bytes of UTF-8 text have no token in this vocabulary; text that has them loses them", n_missing);
  }

  Result<void> encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::vector<std::size_t> ends;
    TRY(splitter_->split(text, ends));
    MergeScratch scratch;
    PieceMemo memo;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const std::string_view piece = text.substr(begin, end - begin);
      memo.append(piece, out, [&] { encode_piece(piece, scratch, out); });
      begin = end;
    }
    return {};
  }

  std::string bytes_of(std::string_view stored) const override { return alphabet_to_bytes(stored); }

 private:
  void encode_piece(std::string_view piece, MergeScratch& scratch, std::vector<TokenId>& out) const {
    if (ignore_merges_) {
      if (const TokenId whole = vocabulary_->find(bytes_to_alphabet(piece)); whole != kNoToken) {
        out.push_back(whole);
        return;
      }
    }
    scratch.clear();
    for (std::size_t i = 0; i < piece.size(); ++i)
      scratch.add(byte_symbols_[static_cast<uint8_t>(piece[i])], static_cast<uint32_t>(i), 1);
    merge_symbols(scratch, [this](const MergeSymbol& left, const MergeSymbol& right) {
      return merges_->find(left.symbol, right.symbol);
    });
    for (int32_t i = 0; i >= 0;) {
      const MergeSymbol& symbol = scratch.symbols[static_cast<std::size_t>(i)];
      if (merges_->is_token(symbol.symbol))
        out.push_back(symbol.symbol);
      else
        append_unknown(piece.substr(symbol.begin, symbol.n_bytes), out);
      i = symbol.right;
    }
  }

  void append_unknown(std::string_view bytes, std::vector<TokenId>& out) const {
    for (const char c : bytes_to_alphabet(bytes))
      if (const TokenId id = single_byte_tokens_[static_cast<uint8_t>(c)]; id != kNoToken) out.push_back(id);
  }

  const Vocabulary* vocabulary_;
  std::unique_ptr<MergeRules> merges_;
  std::unique_ptr<Splitter> splitter_;
  bool ignore_merges_;
  std::array<int32_t, 256> byte_symbols_{};
  std::array<TokenId, 256> single_byte_tokens_{};
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_byte_bpe(const Metadata& metadata, const Pretokenizer& rules,
                                                  const Vocabulary& vocabulary) {
  TRY_ASSIGN(auto merges, MergeRules::read(metadata, vocabulary));
  TRY_ASSIGN(auto splitter, Splitter::create(rules.rules));
  return std::unique_ptr<TokenModel>(
      std::make_unique<ByteBpe>(vocabulary, std::move(merges), std::move(splitter), rules.ignore_merges));
}

}  // namespace hocket
