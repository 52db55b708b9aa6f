// tokenizer/bpe.h: byte-level BPE (kind "gpt2").
//
// The pre-tokenizer's pieces are written in the byte alphabet and merged by rank. Source: Sennrich et al. 2016
// (merges), Radford et al. 2019 (bytes).
//
// Owns     merges and compiled pre-tokenizer.
// Threads  const.
// Errors   as TokenModel; create(): kBadModel for merges.
// Cost     repeated pieces of one text are merged once.
#pragma once

#include <memory>

#include "tokenizer/pretokenizer.h"
#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"
#include "weights/metadata.h"

namespace hocket {

// `vocabulary` must outlive the model.
Result<std::unique_ptr<TokenModel>> make_byte_bpe(const Metadata& metadata, const Pretokenizer& rules,
                                                  const Vocabulary& vocabulary);

}  // namespace hocket
