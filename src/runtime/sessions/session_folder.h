// runtime/sessions/session_folder.h: the sessions of one server on disk.
//
//   FOLDER/lock          held while a server uses the folder
//   FOLDER/sessions.db   the index: which states a session has, and what they are of
//   FOLDER/blobs/NAME    the states, each in a file of its own that never changes
//
// A state is on the disk before the index names it, and is removed after the index has forgotten it. So whatever
// happens at whatever moment, every session that the index has is whole; what nobody names is removed at the next
// start.
//
// Owns     the lock, the index. Files and folders are for their owner only.
// Threads  one at a time, but for read(), which any thread may call.
// Errors   kIo with the path; open(): kBusy with reason "session_dir_in_use" when another server has the folder.
// Cost     write() and change() wait for the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/database.h"
#include "base/folder_lock.h"
#include "base/result.h"
#include "runtime/sessions/session_state.h"

namespace hocket {

struct SessionName {
  std::string tenant, id;
  auto operator<=>(const SessionName&) const = default;
};

// A state in the index.
struct StateRecord {
  std::string blob;  // its file: 32 hexadecimal digits
  std::size_t n_bytes = 0;
  StateKey key;
};

struct SessionRecord {
  SessionName name;
  int64_t used_ms = 0;              // Unix time of the last save
  std::vector<std::string> states;  // blobs, in order
};

struct IndexChange {
  std::vector<const StateRecord*> new_states;
  std::vector<SessionRecord> sessions;  // new, or instead of what they were
  std::vector<SessionName> removed;
  std::vector<std::string> dead_states;  // that no session has any more
};

class SessionFolder {
 public:
  struct Contents {
    std::vector<StateRecord> states;
    std::vector<SessionRecord> sessions;  // each state of each is among `states`
  };
  // What is there, after what is incomplete was removed.
  static Result<std::pair<std::unique_ptr<SessionFolder>, Contents>> open(const std::filesystem::path& path);
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;

  Result<void> write(const std::string& blob, const SessionState& state);
  // kNotFound when it was removed meanwhile.
  Result<SessionState> read(const StateRecord& record) const;
  // All of it or nothing; on the disk when it returns.
  Result<void> change(const IndexChange& change);
  void remove(std::span<const std::string> blobs);

 private:
  SessionFolder() = default;
  Result<Contents> load();

  std::filesystem::path blobs_;
  FolderLock lock_;
  std::unique_ptr<Database> index_;
};

}  // namespace hocket
