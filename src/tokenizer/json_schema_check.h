// tokenizer/json_schema_check.h: decides whether a JSON schema can be enforced, and writes it so that it is.
//
// XGrammar ignores keywords that it does not know, and all siblings of $ref, const, enum, anyOf, oneOf and allOf. The
// parts of allOf are merged first; what would be ignored is refused here; annotations pass. Where a missing keyword
// means "anything" in JSON Schema but "nothing more" in XGrammar's strict mode (an object without properties, an array
// without items), the keyword is added. docs/grammars.md lists what is accepted.
//
// Threads  pure function.
// Errors   kInvalid whose message names the place (JSON pointer) and the keyword; `param` is left empty.
// Cost     linear in the schema, quadratic in the options of a oneOf.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace hocket {

// The largest minLength, maxLength, minItems and maxItems.
inline constexpr int64_t kMaxSchemaCount = 10'000;

// How the value is to be written. gemma 4's notation has no escapes, so what its strings and keys may be is less.
enum class SchemaNotation { kJson, kGemma };

// The schema to compile, as text.
Result<std::string> checked_json_schema(Json schema, SchemaNotation notation = SchemaNotation::kJson);

}  // namespace hocket
