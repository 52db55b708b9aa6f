#include "runtime/sessions/session_folder.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>

#include "base/durable_file.h"
#include "base/log.h"
#include "base/system_error.h"

namespace hocket {
namespace {

constexpr std::array<const char*, 1> kVersions = {R"(
CREATE TABLE blobs (
  name TEXT PRIMARY KEY, n_bytes INTEGER NOT NULL, kind INTEGER NOT NULL, cuts INTEGER NOT NULL,
  has_row INTEGER NOT NULL, n_strict INTEGER NOT NULL, n_prompt INTEGER NOT NULL, tokens BLOB NOT NULL,
  model TEXT NOT NULL, layout TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY, tenant BLOB NOT NULL, id BLOB NOT NULL, used_ms INTEGER NOT NULL, UNIQUE (tenant, id));
CREATE TABLE states (
  session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE, place INTEGER NOT NULL,
  blob TEXT NOT NULL REFERENCES blobs (name), PRIMARY KEY (session, place)) WITHOUT ROWID;
CREATE INDEX states_by_blob ON states (blob);
)"};

bool is_blob_name(std::string_view name) {
  return name.size() == 32 &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void bind_bytes(SQLite::Statement& statement, int place, const void* data, std::size_t n) {
  // Never NULL, also when there is nothing.
  statement.bind(place, n == 0 ? static_cast<const void*>("") : data, static_cast<int>(n));
}

void bind_name(SQLite::Statement& statement, int place, const SessionName& name) {
  bind_bytes(statement, place, name.tenant.data(), name.tenant.size());
  bind_bytes(statement, place + 1, name.id.data(), name.id.size());
}

std::string bytes_of(const SQLite::Column& column) {
  const int n = column.getBytes();
  return n == 0 ? std::string() : std::string(static_cast<const char*>(column.getBlob()), static_cast<std::size_t>(n));
}

// Without a blob's name when the row makes no sense.
StateRecord read_state(SQLite::Statement& row) {
  StateRecord record;
  record.n_bytes = static_cast<std::size_t>(std::max<int64_t>(0, row.getColumn(1).getInt64()));
  StateKey& key = record.key;
  const int kind = row.getColumn(2).getInt();
  key.kind = static_cast<StateKind>(kind);
  key.cuts = row.getColumn(3).getInt() != 0;
  key.has_row = row.getColumn(4).getInt() != 0;
  key.lineage.n_strict = static_cast<std::size_t>(row.getColumn(5).getInt64());
  key.lineage.n_prompt = static_cast<std::size_t>(row.getColumn(6).getInt64());
  const std::string tokens = bytes_of(row.getColumn(7));
  key.tokens.resize(tokens.size() / sizeof(TokenId));
  std::memcpy(key.tokens.data(), tokens.data(), key.tokens.size() * sizeof(TokenId));
  key.identity = {row.getColumn(8).getString(), row.getColumn(9).getString()};
  const bool sane = kind >= 0 && kind <= static_cast<int>(StateKind::kContinuation) && !key.tokens.empty() &&
                    key.lineage.n_prompt <= key.tokens.size() && key.lineage.n_strict <= key.lineage.n_prompt;
  std::string name = row.getColumn(0).getString();
  if (sane && is_blob_name(name)) record.blob = std::move(name);
  return record;
}

Result<void> make_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  if (path.has_parent_path()) TRY(make_folder(path.parent_path()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    Error error = system_error("create", path);
    error.param = "session-dir";
    return error;
  }
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  TRY(sync_folder(parent));
  return {};
}

}  // namespace

Result<std::pair<std::unique_ptr<SessionFolder>, SessionFolder::Contents>> SessionFolder::open(
    const std::filesystem::path& given) {
  // "dir/" and "dir" are the same folder.
  const std::filesystem::path path = given.has_filename() ? given : given.parent_path();
  std::unique_ptr<SessionFolder> folder(new SessionFolder());
  folder->blobs_ = path / "blobs";
  TRY(make_folder(folder->blobs_));
  auto lock = FolderLock::take(path / "lock");
  if (!lock && lock.error().code == ErrorCode::kBusy) {
    Error error(ErrorCode::kBusy, fmt::format("another server uses the session folder {}", path.string()),
                "session-dir");
    error.reason = "session_dir_in_use";
    return error;
  }
  if (!lock) return Error(ErrorCode::kIo, lock.error().message, "session-dir");
  folder->lock_ = std::move(*lock);
  TRY_ASSIGN(folder->index_, Database::open(path / "sessions.db", kVersions));
  TRY_ASSIGN(Contents contents, folder->load());
  return std::pair(std::move(folder), std::move(contents));
}

Result<SessionFolder::Contents> SessionFolder::load() {
  remove_unfinished(blobs_);
  Contents contents;
  std::set<std::string> known;
  const auto whole = [&](const StateRecord& record) {
    std::error_code error;
    const auto n_bytes = std::filesystem::file_size(blobs_ / record.blob, error);
    return !error && n_bytes == record.n_bytes;
  };
  TRY(index_->transact([&](SQLite::Database& db) -> Result<void> {
    db.exec("DELETE FROM blobs WHERE name NOT IN (SELECT blob FROM states)");
    std::vector<std::string> lost;
    SQLite::Statement states(
        db, "SELECT name, n_bytes, kind, cuts, has_row, n_strict, n_prompt, tokens, model, layout FROM blobs");
    while (states.executeStep()) {
      StateRecord record = read_state(states);
      if (record.blob.empty() || !whole(record)) {
        lost.push_back(states.getColumn(0).getString());
        continue;
      }
      known.insert(record.blob);
      contents.states.push_back(std::move(record));
    }
    for (const std::string& name : lost) {
      log_warn("the session state {} is missing or incomplete; it is forgotten", is_blob_name(name) ? name : "?");
      for (const char* text : {"DELETE FROM states WHERE blob = ?", "DELETE FROM blobs WHERE name = ?"}) {
        SQLite::Statement forget(db, text);
        forget.bind(1, name);
        forget.exec();
      }
    }
    db.exec("DELETE FROM sessions WHERE key NOT IN (SELECT session FROM states)");
    SQLite::Statement rows(db,
                           "SELECT key, tenant, id, used_ms, blob FROM sessions JOIN states ON session = key "
                           "ORDER BY used_ms, key, place");
    int64_t last = -1;
    while (rows.executeStep()) {
      const int64_t key = rows.getColumn(0).getInt64();
      if (contents.sessions.empty() || key != last)
        contents.sessions.push_back(
            {{bytes_of(rows.getColumn(1)), bytes_of(rows.getColumn(2))}, rows.getColumn(3).getInt64(), {}});
      last = key;
      contents.sessions.back().states.push_back(rows.getColumn(4).getString());
    }
    return {};
  }));
  std::vector<std::string> unnamed;
  std::error_code error;
  for (std::filesystem::directory_iterator it(blobs_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (is_blob_name(name) && !known.contains(name)) unnamed.push_back(name);
  }
  remove(unnamed);
  return contents;
}

Result<void> SessionFolder::write(const std::string& blob, const SessionState& state) {
  const std::vector<std::byte> head = encode_state_head(state);
  const std::array<std::span<const std::byte>, 2> pieces = {std::span(head), std::span(state.memory)};
  return write_durably(blobs_ / blob, pieces);
}

Result<SessionState> SessionFolder::read(const StateRecord& record) const {
  TRY_ASSIGN(const std::vector<std::byte> bytes, read_file(blobs_ / record.blob, record.n_bytes));
  TRY_ASSIGN(SessionState state, decode_state(bytes));
  const StateKey& there = state.key;
  const StateKey& named = record.key;
  if (there.tokens != named.tokens || there.identity != named.identity || there.cuts != named.cuts ||
      there.has_row != named.has_row || there.lineage.n_strict != named.lineage.n_strict ||
      there.lineage.n_prompt != named.lineage.n_prompt) {
    Error error(ErrorCode::kInvalid, "the saved session is not the one that the index names", "session");
    error.reason = "session_damaged";
    return error;
  }
  return state;
}

Result<void> SessionFolder::change(const IndexChange& change) {
  return index_->transact([&](SQLite::Database& db) -> Result<void> {
    SQLite::Statement forget(db, "DELETE FROM sessions WHERE tenant = ? AND id = ?");
    const auto forget_session = [&](const SessionName& name) {
      forget.reset();
      bind_name(forget, 1, name);
      forget.exec();
    };
    for (const SessionName& name : change.removed) forget_session(name);
    SQLite::Statement add(db, "INSERT INTO blobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const StateRecord* record : change.new_states) {
      const StateKey& key = record->key;
      add.reset();
      add.bind(1, record->blob);
      add.bind(2, static_cast<int64_t>(record->n_bytes));
      add.bind(3, static_cast<int>(key.kind));
      add.bind(4, key.cuts ? 1 : 0);
      add.bind(5, key.has_row ? 1 : 0);
      add.bind(6, static_cast<int64_t>(key.lineage.n_strict));
      add.bind(7, static_cast<int64_t>(key.lineage.n_prompt));
      bind_bytes(add, 8, key.tokens.data(), key.tokens.size() * sizeof(TokenId));
      add.bind(9, key.identity.model);
      add.bind(10, key.identity.layout);
      add.exec();
    }
    SQLite::Statement put(db, "INSERT INTO sessions (tenant, id, used_ms) VALUES (?, ?, ?)");
    SQLite::Statement link(db, "INSERT INTO states VALUES (?, ?, ?)");
    for (const SessionRecord& session : change.sessions) {
      forget_session(session.name);
      put.reset();
      bind_name(put, 1, session.name);
      put.bind(3, session.used_ms);
      put.exec();
      const int64_t key = db.getLastInsertRowid();
      for (std::size_t place = 0; place < session.states.size(); ++place) {
        link.reset();
        link.bind(1, key);
        link.bind(2, static_cast<int64_t>(place));
        link.bind(3, session.states[place]);
        link.exec();
      }
    }
    SQLite::Statement drop(db, "DELETE FROM blobs WHERE name = ?");
    for (const std::string& name : change.dead_states) {
      drop.reset();
      drop.bind(1, name);
      drop.exec();
    }
    return {};
  });
}

void SessionFolder::remove(std::span<const std::string> blobs) {
  for (const std::string& name : blobs) ::unlink((blobs_ / name).c_str());
}

}  // namespace hocket
