#include "runtime/sessions/session_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random_id.h"

namespace hocket {
namespace {

// Saves that wait for the disk hold their states in memory.
constexpr std::size_t kMostPendingBytes = std::size_t{1} << 30;

bool begins_with(std::span<const TokenId> tokens, std::span<const TokenId> beginning) {
  return beginning.size() <= tokens.size() && std::equal(beginning.begin(), beginning.end(), tokens.begin());
}

std::size_t n_same(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t n = std::min(a.size(), b.size());
  const auto first = a.begin();
  return static_cast<std::size_t>(std::mismatch(first, first + static_cast<std::ptrdiff_t>(n), b.begin()).first -
                                  first);
}

}  // namespace

Error SessionStore::no_room() {
  Error error(ErrorCode::kBusy, "the session does not fit into what sessions may take", "session_id");
  error.reason = "cache_budget_exceeded";
  return error;
}

SessionStore::SessionStore(SessionStoreOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<SessionStore>> SessionStore::open(SessionStoreOptions options) {
  std::unique_ptr<SessionStore> store(new SessionStore(std::move(options)));
  if (!store->options_.folder.empty()) {
    TRY_ASSIGN(auto opened, SessionFolder::open(store->options_.folder));
    store->folder_ = std::move(opened.first);
    TRY(store->take_in(std::move(opened.second)));
  }
  store->writer_ = std::thread([raw = store.get()] { raw->write_tasks(); });
  return store;
}

Result<void> SessionStore::take_in(SessionFolder::Contents contents) {
  std::map<std::string, std::shared_ptr<Blob>> blobs;
  for (StateRecord& record : contents.states) {
    auto blob = std::make_shared<Blob>();
    blob->record = std::move(record);
    blobs[blob->record.blob] = std::move(blob);
  }
  for (SessionRecord& record : contents.sessions) {
    Session& session = sessions_[record.name];
    session.used = ++clock_;
    session.used_ms = record.used_ms;
    for (const std::string& name : record.states) session.states.push_back(blobs.at(name));
  }
  // The budget may have been larger the last time.
  const auto change = make_room(std::nullopt, {}, {});
  return change && !change->removed.empty() ? commit(*change) : Result<void>();
}

SessionStore::~SessionStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

// ---- the writer

void SessionStore::post(Task task, std::size_t n_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      tasks_.emplace_back(std::move(task), n_bytes);
      n_pending_bytes_ += n_bytes;
      changed_.notify_all();
      return;
    }
  }
  task(false);
}

void SessionStore::write_tasks() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto [task, n_bytes] = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    const bool run = !stopping_;
    lock.unlock();
    task(run);
    task = nullptr;  // with the states that it held
    lock.lock();
    busy_ = false;
    n_pending_bytes_ -= n_bytes;
    changed_.notify_all();
  }
}

bool SessionStore::wait_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return tasks_.empty() && !busy_; });
}

void SessionStore::save(SessionName name, std::vector<SessionState> states, SaveDone done) {
  const auto start = Clock::now();
  std::size_t n_bytes = 0;
  for (const SessionState& state : states) n_bytes += encoded_bytes(state);
  bool behind = false;
  {
    const std::lock_guard lock(mutex_);
    behind = n_pending_bytes_ > 0 && n_pending_bytes_ + n_bytes > kMostPendingBytes;
    if (behind) ++counts_.n_skipped;
  }
  SaveOutcome early;
  early.n_bytes = n_bytes;
  if (behind || states.empty()) {
    early.reason = behind ? "writer_behind" : "nothing_to_save";
    return done(early);
  }
  auto shared = std::make_shared<std::vector<SessionState>>(std::move(states));
  post(
      [this, start, early, name = std::move(name), shared, done = std::move(done)](bool run) {
        SaveOutcome outcome = early;
        outcome.reason = "draining";
        if (run) outcome = write_save(name, std::move(*shared));
        outcome.n_bytes = early.n_bytes;
        outcome.ms = ms_since(start);
        done(outcome);
      },
      n_bytes);
}

SaveOutcome SessionStore::write_save(const SessionName& name, std::vector<SessionState> states) {
  SaveOutcome outcome;
  Result<void> written;
  try {
    written = put(name, std::move(states));
  } catch (const std::exception& e) {
    written = Error(ErrorCode::kInternal, e.what());
  }
  const bool full = !written && written.error().reason == "cache_budget_exceeded";
  if (written) {
    outcome.stored = folder_ ? SaveOutcome::Stored::kDisk : SaveOutcome::Stored::kRam;
  } else {
    outcome.reason = full ? "over_budget" : "disk_error";
    if (!full) log_error("a session was not saved: {}", written.error().message);
  }
  const std::lock_guard lock(mutex_);
  ++(written ? counts_.n_saved : full ? counts_.n_skipped : counts_.n_failed);
  return outcome;
}

Result<void> SessionStore::put(const SessionName& name, std::vector<SessionState> states) {
  States fresh;
  for (SessionState& state : states) {
    auto blob = std::make_shared<Blob>();
    blob->record = {random_id(), encoded_bytes(state), state.key};
    blob->record.key.has_row = !state.row.empty();
    state.key.has_row = blob->record.key.has_row;
    blob->ram = std::make_shared<const SessionState>(std::move(state));
    fresh.push_back(std::move(blob));
  }
  std::optional<Change> change;
  {
    const std::lock_guard lock(mutex_);
    for (const bool foreign : {true, false}) {
      if (change) break;
      States all = kept_of(name, fresh, foreign);
      all.insert(all.end(), fresh.begin(), fresh.end());
      change = make_room(name, std::move(all), fresh);
    }
  }
  return change ? commit(*change) : Result<void>(no_room());
}

Result<void> SessionStore::commit(const Change& change) {
  std::vector<std::string> dead;
  {
    const std::lock_guard lock(mutex_);
    dead = dead_after(change);
  }
  const int64_t now = unix_now_ms();
  if (folder_) {
    IndexChange index;
    std::vector<std::string> written;
    for (const auto& blob : change.fresh) {
      if (auto result = folder_->write(blob->record.blob, *blob->ram); !result) {
        folder_->remove(written);
        return result.error();
      }
      written.push_back(blob->record.blob);
      index.new_states.push_back(&blob->record);
    }
    if (change.name) {
      SessionRecord& session = index.sessions.emplace_back();
      session.name = *change.name;
      session.used_ms = now;
      for (const auto& blob : change.states) session.states.push_back(blob->record.blob);
    }
    index.removed = change.removed;
    index.dead_states = dead;
    if (auto result = folder_->change(index); !result) {
      // It may be in the index all the same, as a restart would read it, until the next change succeeds.
      doubtful_.insert(doubtful_.end(), written.begin(), written.end());
      return result.error();
    }
    dead.insert(dead.end(), doubtful_.begin(), doubtful_.end());
    doubtful_.clear();
  }
  {
    const std::lock_guard lock(mutex_);
    for (const SessionName& name : change.removed) sessions_.erase(name);
    if (change.evicts) counts_.n_evicted += change.removed.size();
    if (change.name) {
      Session& session = sessions_[*change.name];
      session.states = change.states;
      touch(session);
    }
    trim_ram();
  }
  if (folder_) folder_->remove(dead);
  return {};
}

// ---- what is kept

SessionStore::States SessionStore::kept_of(const SessionName& name, const States& fresh, bool foreign) const {
  States kept;
  const auto session = sessions_.find(name);
  if (session == sessions_.end()) return kept;
  const auto aligned = [](const auto& blob) { return blob->record.key.kind == StateKind::kAligned; };
  const auto cuts = [](const auto& blob) { return blob->record.key.cuts; };
  const bool wants_aligned =
      std::none_of(fresh.begin(), fresh.end(), aligned) && std::none_of(fresh.begin(), fresh.end(), cuts);
  for (const auto& blob : session->second.states) {
    const StateKey& key = blob->record.key;
    const auto continues = [&](const auto& other) { return begins_with(other->record.key.tokens, key.tokens); };
    if (!(key.identity == options_.identity)) {
      if (foreign) kept.push_back(blob);
    } else if (wants_aligned && usable(*blob) && aligned(blob) && std::any_of(fresh.begin(), fresh.end(), continues)) {
      kept.push_back(blob);
    }
  }
  return kept;
}

std::optional<SessionStore::Change> SessionStore::make_room(std::optional<SessionName> name, States states,
                                                            States fresh) const {
  std::unordered_map<const Blob*, std::size_t> n_uses;
  std::map<std::string, std::size_t> by_tenant;
  std::size_t total = 0;
  const auto add = [&](const std::string& tenant, const States& added) {
    for (const auto& blob : added) {
      if (n_uses[blob.get()]++ > 0) continue;
      total += blob->record.n_bytes;
      by_tenant[tenant] += blob->record.n_bytes;
    }
  };
  const auto take_away = [&](const std::string& tenant, const States& removed) {
    for (const auto& blob : removed) {
      if (--n_uses[blob.get()] > 0) continue;
      total -= blob->record.n_bytes;
      by_tenant[tenant] -= blob->record.n_bytes;
    }
  };
  std::vector<Sessions::const_iterator> oldest;
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (name && it->first == *name) continue;
    add(it->first.tenant, it->second.states);
    oldest.push_back(it);
  }
  if (name) add(name->tenant, states);
  std::sort(oldest.begin(), oldest.end(), [](auto a, auto b) { return a->second.used < b->second.used; });

  Change change{name, std::move(states), std::move(fresh), {}, true};
  std::size_t n_left = oldest.size() + (name ? 1 : 0);
  const auto evict_while = [&](const std::function<bool(const std::string&)>& over) {
    std::erase_if(oldest, [&](Sessions::const_iterator it) {
      const std::string& tenant = it->first.tenant;
      if (!over(tenant)) return false;
      take_away(tenant, it->second.states);
      change.removed.push_back(it->first);
      --n_left;
      return true;
    });
  };
  evict_while([&](const std::string& tenant) { return by_tenant[tenant] > most_bytes() / 2; });
  evict_while([&](const std::string&) { return total > most_bytes() || n_left > options_.most_sessions; });
  if (name && (total > most_bytes() || by_tenant[name->tenant] > most_bytes() / 2)) return std::nullopt;
  return change;
}

std::vector<std::string> SessionStore::dead_after(const Change& change) const {
  std::set<std::string> dead;
  const auto goes = [&](const SessionName& name) {
    return (change.name && name == *change.name) ||
           std::find(change.removed.begin(), change.removed.end(), name) != change.removed.end();
  };
  for (const auto& [name, session] : sessions_)
    if (goes(name))
      for (const auto& blob : session.states) dead.insert(blob->record.blob);
  for (const auto& [name, session] : sessions_)
    if (!goes(name))
      for (const auto& blob : session.states) dead.erase(blob->record.blob);
  for (const auto& blob : change.states) dead.erase(blob->record.blob);
  return {dead.begin(), dead.end()};
}

void SessionStore::touch(Session& session) {
  session.used = ++clock_;
  session.used_ms = unix_now_ms();
}

void SessionStore::trim_ram() {
  if (!folder_) return;  // then make_room() has seen to it
  std::vector<std::pair<const std::string*, Session*>> oldest;
  std::map<std::string, std::size_t> by_tenant;
  std::size_t total = 0;
  std::set<const Blob*> seen;
  for (auto& [name, session] : sessions_) {
    oldest.emplace_back(&name.tenant, &session);
    for (const auto& blob : session.states) {
      if (!blob->ram || !seen.insert(blob.get()).second) continue;
      total += blob->record.n_bytes;
      by_tenant[name.tenant] += blob->record.n_bytes;
    }
  }
  std::sort(oldest.begin(), oldest.end(), [](auto a, auto b) { return a.second->used < b.second->used; });
  const auto forget_while = [&](const std::function<bool(const std::string&)>& over) {
    for (const auto& [tenant, session] : oldest) {
      for (const auto& blob : session->states) {
        if (!over(*tenant)) break;
        if (!blob->ram) continue;
        blob->ram = nullptr;
        total -= blob->record.n_bytes;
        by_tenant[*tenant] -= blob->record.n_bytes;
      }
    }
  };
  forget_while([&](const std::string& tenant) { return by_tenant[tenant] > options_.most_ram_bytes / 2; });
  forget_while([&](const std::string&) { return total > options_.most_ram_bytes; });
}

// ---- finding

std::string SessionStore::why_useless(const States& states) const {
  std::string why;
  for (const auto& blob : states) {
    if (usable(*blob)) return "";
    const auto checked = check_identity(options_.identity, blob->record.key.identity);
    why = checked ? "session_damaged" : checked.error().reason;
  }
  return why;
}

Result<std::shared_ptr<const SessionState>> SessionStore::load(Blob& blob) {
  CHECK(folder_ != nullptr);  // else it would be in memory
  auto read = folder_->read(blob.record);
  if (!read) return read.error();
  auto state = std::make_shared<const SessionState>(std::move(*read));
  const std::lock_guard lock(mutex_);
  blob.ram = state;
  trim_ram();
  return state;
}

SessionMatch SessionStore::find(const SessionName& name, std::span<const TokenId> tokens, bool any_lineage) {
  CHECK(!tokens.empty());
  const auto start = Clock::now();
  while (true) {
    SessionMatch match;
    std::shared_ptr<Blob> best;
    {
      const std::lock_guard lock(mutex_);
      const auto session = sessions_.find(name);
      if (session == sessions_.end()) return match;
      for (const auto& blob : session->second.states) {
        if (!usable(*blob)) continue;
        const StateKey& key = blob->record.key;
        const auto can_cut = [&](std::size_t n) { return key.cuts || n == key.tokens.size(); };
        const std::size_t n =
            usable_tokens(key.kept(), n_same(tokens, key.tokens), tokens.size(), any_lineage, options_.rules, can_cut);
        if (n <= match.n_tokens) continue;
        match.n_tokens = n;
        best = blob;
      }
      if (!best) {
        match.reason = why_useless(session->second.states);
        if (!match.reason.empty()) ++counts_.n_refused;
        return match;
      }
      touch(session->second);
      match.state = best->ram;
    }
    if (!match.state) {
      auto loaded = load(*best);
      if (!loaded) {
        const std::lock_guard lock(mutex_);
        if (loaded.error().code == ErrorCode::kIo) {
          log_error("a saved session cannot be read: {}", loaded.error().message);
          ++counts_.n_refused;
          SessionMatch unreadable;
          unreadable.reason = "session_unreadable";
          return unreadable;
        }
        // Nobody misses it when it was replaced in the meantime.
        if (loaded.error().code != ErrorCode::kNotFound)
          log_warn("a saved session is not used: {}", loaded.error().message);
        best->damaged = true;
        continue;
      }
      match.state = std::move(*loaded);
    }
    match.load_ms = ms_since(start);
    return match;
  }
}

void SessionStore::count_restored() {
  const std::lock_guard lock(mutex_);
  ++counts_.n_restored;
}

}  // namespace hocket
