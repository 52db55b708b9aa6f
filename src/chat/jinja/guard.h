// chat/jinja/guard.h: rewrites a parsed template so that everything that can grow, recurse or loop is checked first.
//
// Each node that may be dangerous is replaced by one that evaluates the operands itself, checks them against the
// Budget, and then runs the engine's own node on the results. Bodies of loops and macros begin with a check of time and
// stack.
//
// Threads  the rewritten program is shared and const.
// Errors   exceptions for programs whose parts have the wrong kind.
// Cost     once a template; a guarded node costs a few allocations more than the engine's.
#pragma once

#include "jinja/runtime.h"

namespace hocket::chat_jinja {

void guard_program(jinja::program& program);

}  // namespace hocket::chat_jinja
