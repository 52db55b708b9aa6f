#include "engine/model_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/system_error.h"
#include "runtime/sampling.h"

namespace hocket {
namespace {

Result<std::unique_ptr<Tokenizer>> tokenizer_of(const std::string& model_path) {
  TRY_ASSIGN(const auto file, GgufFile::open(model_path));
  return Tokenizer::load(file->metadata());
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<TokenizedText> tokenize_with(const std::string& model_path, std::string_view text,
                                    const EncodeOptions& options) {
  TRY_ASSIGN(const auto tokenizer, tokenizer_of(model_path));
  TokenizedText out;
  TRY_ASSIGN(out.ids, tokenizer->encode(text, options));
  for (const TokenId id : out.ids) out.pieces.push_back(tokenizer->piece(id, true));
  return out;
}

Result<std::string> detokenize_with(const std::string& model_path, const std::vector<TokenId>& ids) {
  TRY_ASSIGN(const auto tokenizer, tokenizer_of(model_path));
  for (const TokenId id : ids) {
    if (!tokenizer->valid_id(id)) {
      return Error(ErrorCode::kInvalid, fmt::format("token {} is not in the vocabulary", id), "ids");
    }
  }
  return tokenizer->decode(ids, true);
}

Result<WrittenRows> write_logits(const ModelSessionOptions& options, const std::vector<TokenId>& tokens, bool every_row,
                                 const std::string& output_path) {
  static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");
  TRY_ASSIGN(const auto session, ModelSession::open(options));
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(output_path.c_str(), "wb"));
  if (!file) return system_error("write", output_path);
  WrittenRows written;
  written.n_vocab = session->model().n_vocab();
  TRY(session->evaluate(tokens, every_row, [&](std::size_t, std::span<const float> row) -> Result<void> {
    if (std::fwrite(row.data(), sizeof(float), row.size(), file.get()) != row.size())
      return system_error("write", output_path);
    ++written.n_rows;
    return {};
  }));
  if (std::fflush(file.get()) != 0) return system_error("write", output_path);
  return written;
}

Result<Perplexity> measure_perplexity(const ModelSessionOptions& options, std::string_view text,
                                      const std::function<void(std::size_t, std::size_t)>& on_window) {
  TRY_ASSIGN(const auto session, ModelSession::open(options));
  TRY_ASSIGN(const auto tokenizer, session->load_tokenizer());
  TRY_ASSIGN(const std::vector<TokenId> tokens, tokenizer->encode(text, {true, true}));
  if (tokens.size() < 2) return Error(ErrorCode::kInvalid, "the text needs at least two tokens", "text");

  const std::size_t n_window = session->runner().options().n_ctx;
  const std::size_t n_windows = (tokens.size() + n_window - 1) / n_window;
  Perplexity out;
  out.n_tokens = tokens.size();
  double sum = 0;
  double sum_squares = 0;
  for (std::size_t w = 0; w < n_windows; ++w) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(w * n_window);
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min((w + 1) * n_window, tokens.size()));
    const std::vector<TokenId> window(begin, end);
    TRY(session->evaluate(window, true, [&](std::size_t position, std::span<const float> row) -> Result<void> {
      if (position + 1 >= window.size()) return {};
      const double nll = -static_cast<double>(row_logprobs(row, window[position + 1], 0).chosen.logprob);
      sum += nll;
      sum_squares += nll * nll;
      ++out.n_scored;
      return {};
    }));
    if (on_window) on_window(w + 1, n_windows);
  }
  const auto n = static_cast<double>(out.n_scored);
  out.mean_nll = sum / n;
  out.perplexity = std::exp(out.mean_nll);
  const double variance = std::max(0.0, sum_squares / n - out.mean_nll * out.mean_nll);
  out.standard_error = out.n_scored > 1 ? std::sqrt(variance / (n - 1)) : 0;
  return out;
}

}  // namespace hocket
