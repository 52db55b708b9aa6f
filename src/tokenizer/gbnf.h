// tokenizer/gbnf.h: reads a grammar in llama.cpp's GBNF notation and writes it in XGrammar's EBNF.
//
//   root ::= "yes" | [0-9]{1,3} (" " item)*     # comment
//   item ::= [^"\\\n]+
//
// Rules: names of letters, digits, '-' and '_'; literals, character classes, '.', groups, * + ? {m} {m,} {m,n}. A rule
// ends with its line unless a group is open or a '|' precedes or follows the break. Escapes: \n \r \t \\ \" \[ \] \- \^
// \xHH \uHHHH \UHHHHHHHH (each a code point). Start rule: root.
//
// Threads  pure function.
// Errors   kInvalid with line and column: syntax, a rule that is missing, defined twice or left-recursive, bounds above
//          kMaxGbnfRepeat, nesting, expanded size. `param` is left empty.
// Cost     linear in the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hocket {

inline constexpr int kMaxGbnfRepeat = 2000;

Result<std::string> gbnf_to_ebnf(std::string_view source, std::size_t max_rules);

}  // namespace hocket
