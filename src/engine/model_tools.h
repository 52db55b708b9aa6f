// engine/model_tools.h: what the command line asks of a model file besides answers: tokens, logits, perplexity.
//
// Threads  each call by itself.
// Errors   those of opening the file; kInvalid naming "tokens", "ids" or "text"; kIo for the output file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model_session.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct TokenizedText {
  std::vector<TokenId> ids;
  std::vector<std::string> pieces;  // bytes of each, control tokens as their text
};
// Reads the header of the file only.
Result<TokenizedText> tokenize_with(const std::string& model_path, std::string_view text, const EncodeOptions& options);
Result<std::string> detokenize_with(const std::string& model_path, const std::vector<TokenId>& ids);

struct WrittenRows {
  std::size_t n_rows = 0;
  std::size_t n_vocab = 0;
};
// Writes the logits after the last token, or after every token, as rows of little-endian float32.
Result<WrittenRows> write_logits(const ModelSessionOptions& options, const std::vector<TokenId>& tokens, bool every_row,
                                 const std::string& output_path);

struct Perplexity {
  std::size_t n_tokens = 0;   // of the text
  std::size_t n_scored = 0;   // the first of each window has no prediction
  double mean_nll = 0;        // −ln p per scored token
  double standard_error = 0;  // of mean_nll
  double perplexity = 0;      // exp(mean_nll)
};
// Cuts the text into windows of runner.n_ctx tokens, each evaluated from an empty memory. `on_window` hears how many of
// how many are done.
Result<Perplexity> measure_perplexity(const ModelSessionOptions& options, std::string_view text,
                                      const std::function<void(std::size_t, std::size_t)>& on_window);

}  // namespace hocket
