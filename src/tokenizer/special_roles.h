// tokenizer/special_roles.h: which tokens have a role, from the file's keys and from well-known token texts.
//
// Source: language-model files name BOS, EOS, … by keys; end-of-turn, fill-in-the-middle and end-of-generation tokens
// are often only recognisable by their text. Tokens found by text become control tokens. docs/tokenizers.md lists the
// rules.
//
// Threads  called once at load.
// Errors   kBadModel naming a key of the wrong type. An id outside the vocabulary is ignored with a warning.
// Cost     O(tokens).
#pragma once

#include "base/result.h"
#include "tokenizer/vocabulary.h"
#include "weights/metadata.h"

namespace hocket {

// Fills special, end_of_generation and suppressed, and changes types. `defaults` holds what the tokenizer kind assumes
// when the file has no key; default ids outside the vocabulary count as absent.
Result<void> assign_special_roles(const Metadata& metadata, const SpecialTokens& defaults, Vocabulary& vocabulary);

}  // namespace hocket
