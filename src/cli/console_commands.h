// cli/console_commands.h: what begins with a slash in `hocket run`.
//
// Threads  the main thread.
#pragma once

#include <functional>
#include <string>

#include "cli/conversation.h"
#include "engine/requests.h"

namespace hocket {

// Carries out one line that begins with "/". `say` gets what people are to read, a line at a time; `failed` tells what
// went wrong.
class ConsoleCommands {
 public:
  using Say = std::function<void(const std::string& line, bool failed)>;
  ConsoleCommands(Conversation& conversation, GenerationParams& params, Say say)
      : conversation_(conversation), params_(params), say_(std::move(say)) {}

  static bool is_command(const std::string& turn) { return !turn.empty() && turn.front() == '/'; }

  enum class Outcome { kDone, kFailed, kQuit };
  Outcome run(const std::string& line);

 private:
  struct Entry;
  static const Entry kEntries[];

  void tell(const std::string& line) { say_(line, false); }
  Outcome fail(const std::string& line);

  Result<void> help(const std::string& argument);
  Result<void> reset(const std::string& argument);
  Result<void> cancel(const std::string& argument);
  Result<void> system(const std::string& text);
  Result<void> set(const std::string& argument);
  Result<void> save(const std::string& path);
  Result<void> load(const std::string& path);
  Result<void> fork(const std::string& name);
  Result<void> switch_branch(const std::string& name);
  Result<void> quit(const std::string& argument);

  Conversation& conversation_;
  GenerationParams& params_;
  const Say say_;
  bool quit_ = false;
};

}  // namespace hocket
