// tokenizer/json_schema_facts.h: what can be said about a JSON schema by looking at it.
//
// All functions take any JSON value, well-formed schema or not.
//
// Threads  pure functions.
// Cost     bounded by the size of the schema and, for references, by an internal step limit.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace hocket {

// The part that a local reference ("#", "#/a/b") names; nullptr when it is something else.
Json* find_reference(Json& root, const Json& reference);

bool value_has_type(const Json& value, std::string_view type);

// No value can match both: different types, different fixed values, numbers in different ranges, or objects told apart
// by a required property, whose values differ or which the other forbids.
bool provably_disjoint(Json& root, Json& a, Json& b);

// False when every instance would have to contain itself (or references only lead to each other).
bool has_finite_instance(Json& root);

// Refuses regular expressions with constructs that a grammar cannot enforce.
Result<void> check_pattern(std::string_view pattern);

}  // namespace hocket
