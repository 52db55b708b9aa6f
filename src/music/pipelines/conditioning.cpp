#include "music/pipelines/conditioning.h"

#include <fmt/format.h>

#include <algorithm>

#include "music/text_encoder/text_encoder.h"

namespace hocket {
namespace {

struct Encoded {
  std::vector<float> text, lyrics;
};

Result<std::vector<Encoded>> encode_texts(const ConditioningModels& models, const MusicTokenizer& tokenizer,
                                          const std::vector<SongText>& songs, const MusicCompute& compute,
                                          const CancelToken& cancel) {
  TRY_ASSIGN(const auto encoder, models.resident.borrow<TextEncoder>("text encoder " + models.text_encoder_path, [&] {
    return TextEncoder::load(models.text_encoder, compute);
  }));
  std::vector<Encoded> encoded;
  for (const SongText& song : songs) {
    TRY_ASSIGN(const std::vector<TokenId> text, tokenizer.encode(song.text, true));
    TRY_ASSIGN(const std::vector<TokenId> lyrics, tokenizer.encode(song.lyrics, true));
    Encoded one;
    TRY_ASSIGN(one.text, encoder->encode(text, cancel));
    TRY_ASSIGN(one.lyrics, encoder->embed(lyrics, cancel));
    encoded.push_back(std::move(one));
  }
  return encoded;
}

}  // namespace

Result<Conditioning> encode_songs(const ConditioningModels& models, const MusicTokenizer& tokenizer,
                                  const std::vector<SongText>& songs, std::span<const float> timbre,
                                  const MusicCompute& compute, const CancelToken& cancel) {
  TRY_ASSIGN(const std::vector<Encoded> texts, encode_texts(models, tokenizer, songs, compute, cancel));
  TRY_ASSIGN(const auto encoder,
             models.resident.borrow<ConditionEncoder>("condition encoder " + models.dit->path(),
                                                      [&] { return ConditionEncoder::load(models.dit, compute); }));
  std::vector<std::vector<float>> packed;
  Conditioning all;
  for (const Encoded& text : texts) {
    TRY_ASSIGN(std::vector<float> rows, encoder->encode({text.text, text.lyrics, timbre}, cancel));
    all.lengths.push_back(static_cast<int64_t>(rows.size()) / encoder->n_embd());
    all.n_rows = std::max(all.n_rows, all.lengths.back());
    packed.push_back(std::move(rows));
  }
  std::vector<float> filler = models.dit->null_condition();
  if (filler.empty()) filler.assign(static_cast<std::size_t>(models.dit->n_enc()), 0.0f);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    all.rows.insert(all.rows.end(), packed[i].begin(), packed[i].end());
    for (int64_t row = all.lengths[i]; row < all.n_rows; ++row)
      all.rows.insert(all.rows.end(), filler.begin(), filler.end());
  }
  return all;
}

std::vector<float> unconditional_rows(const DitFile& dit, const Conditioning& like) {
  std::vector<float> rows;
  rows.reserve(like.rows.size());
  while (rows.size() < like.rows.size())
    rows.insert(rows.end(), dit.null_condition().begin(), dit.null_condition().end());
  return rows;
}

}  // namespace hocket
