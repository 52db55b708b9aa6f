// tokenizer/raw_bpe.h: BPE on the characters of the text itself (kind "gemma4", and pre-tokenizers with raw_text).
//
// Spaces are written as U+2581; a line, or a run of newlines, is one piece; characters without a token become byte
// tokens.
//
// Owns     merges.
// Threads  const.
// Errors   as TokenModel; create(): kBadModel for merges.
#pragma once

#include <memory>

#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"
#include "weights/metadata.h"

namespace hocket {

// `vocabulary` must outlive the model.
Result<std::unique_ptr<TokenModel>> make_raw_bpe(const Metadata& metadata, const Vocabulary& vocabulary);

}  // namespace hocket
