// chat/jinja/shape.h: looks at the tokens of a template before the engine's recursive parser does.
//
// Threads  pure.
// Errors   the first defect: unbalanced brackets or blocks, unclosed tags, and what is nested too deeply.
// Cost     linear in the tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "jinja/lexer.h"

namespace hocket::chat_jinja {

struct Defect {
  std::size_t pos = 0;  // byte of the source
  std::string message;
};

std::optional<Defect> find_defect(const std::vector<jinja::token>& tokens);

}  // namespace hocket::chat_jinja
