// What clients ask of the store: everything here goes through the writer, or only looks.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <set>
#include <utility>

#include "runtime/sessions/session_store.h"

namespace hocket {
namespace {

Error with_reason(ErrorCode code, std::string message, const char* param, const char* reason) {
  Error error(code, std::move(message), param);
  error.reason = reason;
  return error;
}

Error not_found(const std::string& id) {
  return with_reason(ErrorCode::kNotFound, fmt::format("there is no session \"{}\"", id), "session_id",
                     "session_not_found");
}

Error draining() {
  return with_reason(ErrorCode::kBusy, "the server is shutting down", "", "draining");
}

}  // namespace

template <class T>
Result<T> SessionStore::on_writer(std::function<Result<T>()> act) {
  const auto promise = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> result = promise->get_future();
  const auto guarded = [&]() -> Result<T> {
    try {
      return act();
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInternal, fmt::format("the sessions could not be changed: {}", e.what()));
    }
  };
  post([promise, &guarded](bool run) { promise->set_value(run ? guarded() : Result<T>(draining())); }, 0);
  return result.get();
}

Result<void> SessionStore::fork(const std::string& tenant, const std::string& source, const std::string& target) {
  if (source == target)
    return Error(ErrorCode::kInvalid, "a session cannot become a copy of itself", "target_session_id");
  return on_writer<void>([&]() -> Result<void> {
    std::optional<Change> change;
    {
      const std::lock_guard lock(mutex_);
      const auto from = sessions_.find({tenant, source});
      if (from == sessions_.end()) {
        Error error = not_found(source);
        error.param = "source_session_id";
        return error;
      }
      touch(from->second);
      const SessionName to{tenant, target};
      if (sessions_.contains(to) || sessions_.size() < options_.most_sessions)
        change = make_room(to, from->second.states, {});
    }
    if (!change) return no_room();
    TRY(commit(*change));
    const std::lock_guard lock(mutex_);
    ++counts_.n_forked;
    return {};
  });
}

Result<std::size_t> SessionStore::erase(const std::function<bool(const SessionName&)>& matches) {
  return on_writer<std::size_t>([&]() -> Result<std::size_t> {
    Change change;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, session] : sessions_)
        if (matches(name)) change.removed.push_back(name);
    }
    if (!change.removed.empty()) TRY(commit(change));
    return change.removed.size();
  });
}

Result<void> SessionStore::drop(const SessionName& name) {
  TRY_ASSIGN(const std::size_t n, erase([&](const SessionName& other) { return other == name; }));
  return n > 0 ? Result<void>() : Result<void>(not_found(name.id));
}

Result<std::size_t> SessionStore::drop_tenant(const std::string& tenant) {
  return erase([&](const SessionName& name) { return name.tenant == tenant; });
}

Result<std::size_t> SessionStore::drop_all() {
  return erase([](const SessionName&) { return true; });
}

Result<std::vector<std::byte>> SessionStore::export_session(const SessionName& name) {
  // By the writer, so that nothing is removed meanwhile.
  return on_writer<std::vector<std::byte>>([&]() -> Result<std::vector<std::byte>> {
    States states;
    std::string reason;
    {
      const std::lock_guard lock(mutex_);
      const auto session = sessions_.find(name);
      if (session == sessions_.end()) return not_found(name.id);
      std::copy_if(session->second.states.begin(), session->second.states.end(), std::back_inserter(states),
                   [&](const auto& blob) { return usable(*blob); });
      reason = why_useless(session->second.states);
    }
    if (states.empty())
      return with_reason(ErrorCode::kInvalid, "the session was saved by another model or settings, or is damaged",
                         "session_id", reason == "session_damaged" ? "session_damaged" : reason.c_str());
    std::vector<std::vector<std::byte>> parts;
    for (const auto& blob : states) {
      std::shared_ptr<const SessionState> state;
      {
        const std::lock_guard lock(mutex_);
        state = blob->ram;
      }
      if (!state) {
        TRY_ASSIGN(state, load(*blob));
      }
      std::vector<std::byte>& part = parts.emplace_back(encode_state_head(*state));
      part.insert(part.end(), state->memory.begin(), state->memory.end());
    }
    return pack_states(parts);
  });
}

Result<void> SessionStore::import_session(const SessionName& name, std::span<const std::byte> bytes) {
  TRY_ASSIGN(std::vector<SessionState> states, unpack_states(bytes));
  for (const SessionState& state : states) TRY(check_identity(options_.identity, state.key.identity));
  return on_writer<void>([&]() -> Result<void> { return put(name, std::move(states)); });
}

// ---- what there is

std::vector<SessionInfo> SessionStore::list(const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, SessionInfo>> found;
  for (auto it = sessions_.lower_bound({tenant, ""}); it != sessions_.end() && it->first.tenant == tenant; ++it) {
    SessionInfo info;
    info.id = it->first.id;
    info.n_states = it->second.states.size();
    info.on_disk = folder_ != nullptr;
    info.used_ms = it->second.used_ms;
    info.reason = why_useless(it->second.states);
    info.in_ram = true;
    for (const auto& blob : it->second.states) {
      info.n_bytes += blob->record.n_bytes;
      info.n_tokens = std::max(info.n_tokens, blob->record.key.tokens.size());
      info.in_ram = info.in_ram && blob->ram != nullptr;
    }
    found.emplace_back(it->second.used, std::move(info));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SessionInfo> all;
  for (auto& [used, info] : found) all.push_back(std::move(info));
  return all;
}

SessionStats SessionStore::stats() const {
  const std::lock_guard lock(mutex_);
  SessionStats stats = counts_;
  stats.persistent = folder_ != nullptr;
  stats.most_ram_bytes = options_.most_ram_bytes;
  stats.most_disk_bytes = folder_ ? options_.most_disk_bytes : 0;
  stats.n_sessions = sessions_.size();
  const std::string* last = nullptr;
  std::set<const Blob*> seen;
  for (const auto& [name, session] : sessions_) {
    if (last == nullptr || *last != name.tenant) ++stats.n_tenants;
    last = &name.tenant;
    for (const auto& blob : session.states) {
      if (!seen.insert(blob.get()).second) continue;
      ++stats.n_states;
      if (blob->ram) stats.ram_bytes += blob->record.n_bytes;
      if (folder_) stats.disk_bytes += blob->record.n_bytes;
    }
  }
  const auto is_save = [](const auto& task) { return task.second > 0; };
  stats.n_pending = static_cast<std::size_t>(std::count_if(tasks_.begin(), tasks_.end(), is_save));
  return stats;
}

}  // namespace hocket
