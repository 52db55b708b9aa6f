// runtime/sessions/session_store.h: named conversations whose states last: in memory, and on disk when there is a
// folder.
//
// A session (tenant, id) has a few states (session_state.h). With a folder every state is on disk and those used last
// are in memory, too; without one they are in memory only. Everything that changes sessions goes through one writer
// thread, in the order in which it was asked for. What a fork shares with its source is kept once.
//
// Budgets are bytes. What was not used for the longest time makes room; one tenant has at most half of each. A save
// that does not fit, or that the disk refuses, is reported and leaves the session as it was.
//
// Owns     the states, the folder, the writer thread.
// Threads  any. save() never waits; find() may read from the disk; the others wait for the writer.
// Errors   kNotFound with reason "session_not_found"; kBusy with reason "cache_budget_exceeded" when there is no room,
//          "draining" at the end; import_session(): those of session_state.h; kIo.
// Cost     a save writes its states once and waits for the disk three times; a fork writes rows of the index only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "runtime/sessions/session_folder.h"
#include "runtime/sessions/session_state.h"

namespace hocket {

struct SessionStoreOptions {
  std::filesystem::path folder;  // empty: in memory only
  std::size_t most_ram_bytes = std::size_t{1} << 30;
  std::size_t most_disk_bytes = std::size_t{8} << 30;
  std::size_t most_sessions = 65536;
  ReuseRules rules;
  StateIdentity identity;  // of the states that can be used now
};

struct SaveOutcome {
  enum class Stored { kDisk, kRam, kSkipped };
  Stored stored = Stored::kSkipped;
  std::string reason;       // why it was skipped
  std::size_t n_bytes = 0;  // of the new states
  double ms = 0;            // since save()
};

struct SessionMatch {
  std::shared_ptr<const SessionState> state;  // nullptr: nothing to start from
  std::size_t n_tokens = 0;                   // that the prompt can start from
  double load_ms = 0;
  std::string reason;  // why a session of that name is of no use: "session_model", "session_layout", "session_damaged"
};

struct SessionInfo {
  std::string id;
  std::size_t n_states = 0;
  std::size_t n_tokens = 0;  // of its longest state
  std::size_t n_bytes = 0;
  bool on_disk = false, in_ram = false;
  int64_t used_ms = 0;  // Unix time of the last save, or of the last use in this process
  std::string reason;   // as of SessionMatch; empty: it can be used
};

struct SessionStats {
  bool persistent = false;
  std::size_t n_sessions = 0, n_tenants = 0, n_states = 0;
  std::size_t ram_bytes = 0, most_ram_bytes = 0;
  std::size_t disk_bytes = 0, most_disk_bytes = 0;
  std::size_t n_pending = 0;                          // saves that are not written yet
  uint64_t n_evicted = 0;                             // sessions that made room
  uint64_t n_saved = 0, n_skipped = 0, n_failed = 0;  // saves: done, without room, refused by the disk
  uint64_t n_restored = 0, n_refused = 0, n_forked = 0;
};

class SessionStore {
 public:
  static Result<std::unique_ptr<SessionStore>> open(SessionStoreOptions options);
  // Ends the save that is being written; those that wait are skipped.
  ~SessionStore();

  const SessionStoreOptions& options() const { return options_; }

  using SaveDone = std::function<void(const SaveOutcome&)>;
  // The session is these states from then on; `done` is called from another thread, once they are where they stay. An
  // aligned state that they begin with remains when they have none, and so do states of another identity.
  void save(SessionName name, std::vector<SessionState> states, SaveDone done);
  // The state of the session that a prompt can best start from.
  SessionMatch find(const SessionName& name, std::span<const TokenId> tokens, bool any_lineage);
  // The match was worth it.
  void count_restored();

  // `target` becomes what `source` is.
  Result<void> fork(const std::string& tenant, const std::string& source, const std::string& target);
  Result<void> drop(const SessionName& name);
  // How many there were.
  Result<std::size_t> drop_tenant(const std::string& tenant);
  Result<std::size_t> drop_all();
  // All states that can be used now.
  Result<std::vector<std::byte>> export_session(const SessionName& name);
  Result<void> import_session(const SessionName& name, std::span<const std::byte> bytes);

  std::vector<SessionInfo> list(const std::string& tenant) const;  // the one used last first
  SessionStats stats() const;
  // Nothing waits to be written; false when `limit` passed before.
  bool wait_idle(std::chrono::milliseconds limit);

 private:
  struct Blob {
    StateRecord record;
    std::shared_ptr<const SessionState> ram;  // nullptr: on disk only
    bool damaged = false;
  };
  using States = std::vector<std::shared_ptr<Blob>>;
  struct Session {
    States states;
    uint64_t used = 0;  // larger: later
    int64_t used_ms = 0;
  };
  using Sessions = std::map<SessionName, Session>;
  struct Change {
    std::optional<SessionName> name;  // a session that is `states` from then on
    States states;
    States fresh;  // of these: not written yet
    std::vector<SessionName> removed;
    bool evicts = false;  // whether `removed` make room
  };

  explicit SessionStore(SessionStoreOptions options);
  static Error no_room();
  Result<void> take_in(SessionFolder::Contents contents);

  // ---- the writer
  using Task = std::function<void(bool run)>;  // false: the end has come first
  void write_tasks();
  void post(Task task, std::size_t n_bytes);
  template <class T>
  Result<T> on_writer(std::function<Result<T>()> act);
  SaveOutcome write_save(const SessionName& name, std::vector<SessionState> states);
  Result<void> put(const SessionName& name, std::vector<SessionState> states);
  Result<void> commit(const Change& change);
  Result<std::size_t> erase(const std::function<bool(const SessionName&)>& matches);

  // ---- with the lock held
  // What stays of a session beside its new states.
  States kept_of(const SessionName& name, const States& fresh, bool foreign) const;
  // What has to go when `name` becomes `states`, or if nothing does; nullopt when there cannot be room.
  std::optional<Change> make_room(std::optional<SessionName> name, States states, States fresh) const;
  std::vector<std::string> dead_after(const Change& change) const;
  std::size_t most_bytes() const { return folder_ ? options_.most_disk_bytes : options_.most_ram_bytes; }
  void trim_ram();
  void touch(Session& session);
  bool usable(const Blob& blob) const { return !blob.damaged && blob.record.key.identity == options_.identity; }
  std::string why_useless(const States& states) const;

  Result<std::shared_ptr<const SessionState>> load(Blob& blob);

  const SessionStoreOptions options_;
  std::unique_ptr<SessionFolder> folder_;  // nullptr: in memory only

  mutable std::mutex mutex_;
  Sessions sessions_;  // changed by the writer thread only, but for use and copies in memory
  uint64_t clock_ = 0;
  SessionStats counts_;
  // States of changes that the index refused: whether it has them is known at the next start.
  std::vector<std::string> doubtful_;

  std::condition_variable changed_;
  std::deque<std::pair<Task, std::size_t>> tasks_;
  std::size_t n_pending_bytes_ = 0;
  bool busy_ = false, stopping_ = false;
  std::thread writer_;
};

}  // namespace hocket
