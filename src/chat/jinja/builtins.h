// chat/jinja/builtins.h: what happens before the engine runs one of its own functions, methods, filters or tests.
//
// The engine's versions trust their arguments: some grow without limit, two are quadratic in the text, one divides by
// zero, one sorts with a comparison that is no order.
//
// Threads  needs the current thread's Budget.
// Errors   exceptions, see budget.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jinja/value.h"

namespace hocket::chat_jinja {

// Checks `name` on `self` (null for a plain function) with `args`. A value is returned when the work is already done.
std::optional<jinja::value> before_builtin(const std::string& name, const jinja::value& self,
                                           const std::vector<jinja::value>& args);

}  // namespace hocket::chat_jinja
