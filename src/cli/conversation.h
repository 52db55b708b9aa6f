// cli/conversation.h: what was said, in named branches, and as a file.
//
// Threads  plain values.
// Errors   kInvalid for names of branches and contents of files; kIo with the path.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/requests.h"

namespace hocket {

// As in a chat request.
Json messages_json(const std::vector<Message>& messages);

class Conversation {
 public:
  // One branch, "main", that holds the system message; "" is none.
  explicit Conversation(const std::string& system);

  const std::vector<Message>& messages() const { return branches_.at(current_); }
  void add(Message message) { branches_[current_].push_back(std::move(message)); }
  void drop_last() { branches_[current_].pop_back(); }
  // Forgets all of the branch but the system message.
  void reset();

  std::string system() const;
  void set_system(const std::string& text);

  const std::string& branch() const { return current_; }
  std::vector<std::string> branches() const;
  // Copies the branch under a new name and goes on there.
  Result<void> fork(const std::string& name);
  Result<void> switch_to(const std::string& name);

  // {"messages": […]} as in a chat request, mode 0600. An existing file is replaced only if it is such a file.
  Result<void> save(const std::string& path) const;
  // Replaces the branch.
  Result<void> load(const std::string& path);

 private:
  std::map<std::string, std::vector<Message>> branches_;
  std::string current_ = "main";
};

}  // namespace hocket
