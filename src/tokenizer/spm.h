// tokenizer/spm.h: SentencePiece's BPE (kind "llama").
//
// Spaces are written as U+2581, with one before the text where the vocabulary asks; adjacent symbols whose text is a
// token are merged, the best score first. Source: Kudo and Richardson 2018.
//
// Owns     ranks made from the scores.
// Threads  const.
// Errors   create(): kBadModel naming tokenizer.ggml.scores.
#pragma once

#include <memory>

#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"
#include "weights/metadata.h"

namespace hocket {

// `vocabulary` must outlive the model.
Result<std::unique_ptr<TokenModel>> make_spm(const Metadata& metadata, const Vocabulary& vocabulary);

}  // namespace hocket
