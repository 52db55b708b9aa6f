// tokenizer/json_schema_merge.h: writes the parts of an allOf as one schema.
//
// A value matches all parts when it matches one schema with all their keywords; where two parts have the same keyword,
// it is their intersection: types in common, properties of both (and merged where both have one), the narrower bound,
// values that both name. References among the parts are followed. An allOf of one part without anything beside it
// stays.
//
// Threads  pure function.
// Errors   kInvalid naming the keyword whose intersection is no keyword; `param` is left empty.
// Cost     linear in the schema and what its parts refer to, within a limit.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace hocket {

Result<void> merge_all_of(Json& root);

}  // namespace hocket
