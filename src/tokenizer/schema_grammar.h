// tokenizer/schema_grammar.h: XGrammar's grammar of a checked JSON schema, with what it leaves unbounded bounded.
//
// Threads  pure functions.
// Errors   XGrammar's exceptions pass through; callers catch them.
// Cost     linear in the grammar.
#pragma once

#include <string>

namespace hocket {

// JSON on one line with ", " and ": " between.
std::string schema_ebnf(const std::string& schema);

// The same value in gemma 4's notation: bare keys, strings between <|"|>, no white space.
std::string gemma_ebnf(const std::string& schema);

}  // namespace hocket
