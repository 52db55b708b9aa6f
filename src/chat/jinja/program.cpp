#include "chat/jinja/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/jinja/guard.h"
#include "chat/jinja/shape.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"

namespace hocket {

namespace jj = jinja;
using namespace chat_jinja;

struct JinjaProgram::Impl {
  std::string source;
  TemplateLimits limits;
  jj::program program;
};

namespace {

std::size_t line_of(std::string_view source, std::size_t pos) {
  return 1 + static_cast<std::size_t>(std::count(source.begin(), source.begin() + std::min(pos, source.size()), '\n'));
}

Error bad_template(std::string_view source, std::size_t pos, std::string_view message) {
  return Error(ErrorCode::kBadModel, fmt::format("chat template, line {}: {}", line_of(source, pos), message),
               "tokenizer.chat_template");
}

std::string with_unix_lines(std::string text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out.push_back(text[i]);
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out.push_back('\n');
    }
  }
  return out;
}

// The engine's messages are "lexer: what\n...excerpt...\n   ^": the first line without the tag.
std::string first_line(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  for (const std::string_view tag : {"lexer: ", "parser: ", "Parser Error: "}) {
    if (message.starts_with(tag)) message.remove_prefix(tag.size());
  }
  return std::string(message);
}

// The parser says what is wrong but not where. It reads its tokens once, from the left, so the shortest run of tokens
// that fails in the same words ends at the place.
std::optional<std::string> parse_failure(const std::vector<jj::token>& tokens, std::size_t n) {
  try {
    jj::parse_from_tokens(
        {std::vector<jj::token>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)), ""});
  } catch (const std::exception& e) {
    return first_line(e.what());
  }
  return std::nullopt;
}
std::size_t failing_position(const std::vector<jj::token>& tokens, const std::string& failure) {
  std::size_t good = 0, bad = tokens.size();
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (parse_failure(tokens, middle) == failure ? bad : good) = middle;
  }
  return tokens[bad - 1].pos;
}

// How far the lexer comes: it reads from the left too.
std::size_t lexer_position(const std::string& source, const std::string& failure) {
  if (failure.find("comment") != std::string::npos) return source.rfind("{#");
  if (failure.find("end of input") != std::string::npos) return source.size();
  const auto fails = [&](std::size_t n) {
    try {
      jj::lexer().tokenize(source.substr(0, n));
    } catch (const std::exception& e) {
      return first_line(e.what()) == failure;
    }
    return false;
  };
  std::size_t good = 0, bad = source.size();
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (fails(middle) ? bad : good) = middle;
  }
  return bad == 0 ? 0 : bad - 1;
}

// "…at line 3, column 5 in source:\n…\nError: what" → "line 3: what".
std::string render_failure(std::string_view message) {
  std::string line;
  if (const auto at = message.find(" at line "); at != std::string_view::npos) {
    const auto begin = at + 4;
    line = std::string(message.substr(begin, message.find(',', begin) - begin)) + ": ";
  }
  if (const auto at = message.find("\nError: "); at != std::string_view::npos) message.remove_prefix(at + 8);
  if (message.starts_with("Jinja Exception: ")) message.remove_prefix(17);
  return fmt::format("chat template, {}{}", line, message.substr(0, 2000));
}

jj::value clock_function(std::time_t now) {
  return jj::mk_val<jj::value_func>("strftime_now", [now](const jj::func_args& args) -> jj::value {
    if (args.count() != 1 || !is_text(args.get_pos(0))) refuse("strftime_now takes a format");
    const std::string format = args.get_pos(0)->as_string().str();
    if (format.size() > 1000) refuse("strftime_now: the format is too long");
    std::tm broken_down{};
    localtime_r(&now, &broken_down);
    // The leading character tells an empty result from a full buffer.
    std::string out(16'384, '\0');
    const std::size_t n = std::strftime(out.data(), out.size(), ("x" + format).c_str(), &broken_down);
    if (n == 0) refuse("strftime_now: the result is too long");
    return jj::mk_val<jj::value_string>(out.substr(1, n - 1));
  });
}

}  // namespace

JinjaProgram::JinjaProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JinjaProgram::~JinjaProgram() = default;

Result<std::unique_ptr<JinjaProgram>> JinjaProgram::parse(std::string source, const TemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return Error(ErrorCode::kBadModel,
                 fmt::format("chat template: {} bytes, the limit is {}", source.size(), limits.max_source_bytes),
                 "tokenizer.chat_template");
  }
  auto impl = std::make_unique<Impl>();
  impl->source = with_unix_lines(std::move(source));
  impl->limits = limits;
  jj::lexer_result lexed;
  try {
    lexed = jj::lexer().tokenize(impl->source);
  } catch (const std::exception& e) {
    const std::string failure = first_line(e.what());
    return bad_template(impl->source, lexer_position(impl->source, failure), failure);
  }
  if (const auto defect = find_defect(lexed.tokens)) return bad_template(impl->source, defect->pos, defect->message);
  try {
    impl->program = jj::parse_from_tokens(lexed);
    guard_program(impl->program);
  } catch (const std::exception& e) {
    const std::string failure = first_line(e.what());
    return bad_template(impl->source, failing_position(lexed.tokens, failure), failure);
  }
  return std::unique_ptr<JinjaProgram>(new JinjaProgram(std::move(impl)));
}

Result<std::string> JinjaProgram::render(const Json& variables, std::time_t now) const {
  try {
    Budget budget(impl_->limits);
    jj::context context(impl_->source);
    for (const auto& [name, item] : variables.items()) context.set_val(name, to_value(item));
    context.set_val("strftime_now", clock_function(now));
    const auto pieces = jj::runtime(context).execute(impl_->program);
    std::string text = jj::render_string_parts(jj::runtime::gather_string_parts(pieces));
    budget.check_bytes(static_cast<double>(text.size()));
    return text;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, "not enough memory to render the chat template", "messages");
  } catch (const std::exception& e) {
    return Error(ErrorCode::kInvalid, render_failure(e.what()), "messages");
  }
}

}  // namespace hocket
