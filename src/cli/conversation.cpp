#include "cli/conversation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system_error.h"
#include "cli/text_input.h"
#include "http/chat_messages.h"

namespace hocket {
namespace {

bool has_system(const std::vector<Message>& messages) {
  return !messages.empty() && messages.front().role == "system";
}

Message system_message(const std::string& text) {
  Message message;
  message.role = "system";
  message.content = text;
  return message;
}

Json message_json(const Message& message) {
  Json json = Json::object();
  json["role"] = message.role;
  json["content"] = message.content ? Json(*message.content) : Json(nullptr);
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  return json;
}

Result<std::vector<Message>> read_conversation(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text(path));
  TRY_ASSIGN(const Json json, parse_json(text));
  FieldReader fields(json, "");
  std::vector<Message> messages = read_messages(fields, HttpLimits());
  TRY(fields.check());
  return messages;
}

}  // namespace

Json messages_json(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) list.push_back(message_json(message));
  return list;
}

Conversation::Conversation(const std::string& system) {
  branches_[current_];
  set_system(system);
}

void Conversation::reset() {
  std::vector<Message>& messages = branches_[current_];
  messages.resize(has_system(messages) ? 1 : 0);
}

std::string Conversation::system() const {
  return has_system(messages()) ? messages().front().content.value_or("") : "";
}

void Conversation::set_system(const std::string& text) {
  std::vector<Message>& messages = branches_[current_];
  if (has_system(messages)) messages.erase(messages.begin());
  if (!text.empty()) messages.insert(messages.begin(), system_message(text));
}

std::vector<std::string> Conversation::branches() const {
  std::vector<std::string> names;
  for (const auto& [name, messages] : branches_) names.push_back(name);
  return names;
}

Result<void> Conversation::fork(const std::string& name) {
  if (name.empty()) return Error(ErrorCode::kInvalid, "a branch needs a name");
  if (branches_.count(name) != 0) return Error(ErrorCode::kInvalid, fmt::format("there is a branch {} already", name));
  branches_[name] = branches_[current_];
  current_ = name;
  return {};
}

Result<void> Conversation::switch_to(const std::string& name) {
  if (branches_.count(name) == 0) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("there is no branch {}; there are: {}", name, fmt::join(branches(), ", ")));
  }
  current_ = name;
  return {};
}

Result<void> Conversation::save(const std::string& path) const {
  std::error_code fault;
  if (std::filesystem::exists(path, fault) && !read_conversation(path)) {
    return Error(ErrorCode::kInvalid, fmt::format("{} exists and is no saved conversation; it stays as it is", path));
  }
  Json json = Json::object();
  json["messages"] = messages_json(messages());
  const std::string text = dump_json(json, 2) + "\n";
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) ::close(file);
  written = written && std::rename(fresh.c_str(), path.c_str()) == 0;
  if (!written) return system_error("write", path);
  return {};
}

Result<void> Conversation::load(const std::string& path) {
  auto messages = read_conversation(path);
  if (!messages) {
    Error error = messages.error();
    if (error.code != ErrorCode::kIo) error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  branches_[current_] = std::move(*messages);
  return {};
}

}  // namespace hocket
