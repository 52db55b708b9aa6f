// tokenizer/structure_tag.h: a Structure as XGrammar's structural tag.
//
// Threads  pure functions.
// Errors   kInvalid; `param` is left empty. Message as of checked_json_schema() or gbnf_to_ebnf().
// Cost     linear in the structure, and converting each of its schemas.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/structure.h"

namespace hocket {

// Checks the source of one part and gives what is to be compiled.
using CheckSource = std::function<Result<std::string>(const std::string&)>;

struct StructureChecks {
  CheckSource schema, gemma_schema, gbnf, pattern;
};

// The JSON text of the structural tag.
Result<std::string> structural_tag(const Structure& structure, const StructureChecks& checks);

// Everything that is written literally.
std::vector<std::string_view> literals_of(const Structure& structure);

}  // namespace hocket
