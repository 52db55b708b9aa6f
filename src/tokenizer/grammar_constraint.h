// tokenizer/grammar_constraint.h: a TokenConstraint over a compiled XGrammar grammar.
//
// Owns     the matcher's state; shares the compiled grammar.
// Threads  one user at a time.
// Errors   kInternal when the matcher refuses a token or throws.
#pragma once

#include <xgrammar/compiler.h>

#include <memory>

#include "base/result.h"
#include "tokenizer/token_constraint.h"

namespace hocket {

Result<std::unique_ptr<TokenConstraint>> make_grammar_constraint(const xgrammar::CompiledGrammar& grammar);

}  // namespace hocket
