#include "jobs/job_store.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <system_error>

#include "base/clock.h"
#include "base/durable_file.h"
#include "base/log.h"
#include "base/system_error.h"

namespace hocket {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersions[] = {R"sql(
  CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, kind TEXT NOT NULL,
    request TEXT NOT NULL, state TEXT NOT NULL, starts INTEGER NOT NULL,
    error_code TEXT, error_message TEXT, error_param TEXT, error_reason TEXT,
    created INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL);
  CREATE TABLE warning (job TEXT NOT NULL REFERENCES job(id) ON DELETE CASCADE, text TEXT NOT NULL);
  CREATE INDEX warning_of_job ON warning (job);
  CREATE TABLE file (
    job TEXT NOT NULL REFERENCES job(id) ON DELETE CASCADE, role INTEGER NOT NULL, number INTEGER NOT NULL,
    name TEXT NOT NULL, media_type TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (job, role, number));
)sql"};

template <class Value>
Value by_name(std::string_view name, Value last, std::string_view (*name_of)(Value)) {
  for (int i = 0; i < static_cast<int>(last); ++i)
    if (name_of(static_cast<Value>(i)) == name) return static_cast<Value>(i);
  return last;
}

void put_files(SQLite::Database& db, const std::string& id, int role, const std::vector<JobFile>& files) {
  SQLite::Statement insert(db, "INSERT INTO file VALUES (?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < files.size(); ++i) {
    insert.bind(1, id);
    insert.bind(2, role);
    insert.bind(3, static_cast<int64_t>(i));
    insert.bind(4, files[i].name);
    insert.bind(5, files[i].media_type);
    insert.bind(6, static_cast<int64_t>(files[i].n_bytes));
    insert.exec();
    insert.reset();
  }
}

void put_state(SQLite::Database& db, const JobRecord& record) {
  SQLite::Statement update(db,
                           "UPDATE job SET state=?, starts=?, started=?, ended=?, error_code=?, error_message=?, "
                           "error_param=?, error_reason=? WHERE id=?");
  update.bind(1, std::string(job_state_name(record.state)));
  update.bind(2, record.n_starts);
  update.bind(3, record.started_ms);
  update.bind(4, record.ended_ms);
  if (record.error) {
    update.bind(5, std::string(error_code_name(record.error->code)));
    update.bind(6, record.error->message);
    update.bind(7, record.error->param);
    update.bind(8, record.error->reason);
  }
  update.bind(9, record.id);
  update.exec();
}

// The columns of the SELECT in load().
JobRecord record_of(SQLite::Statement& row) {
  JobRecord record;
  record.id = row.getColumn(0).getString();
  record.owner = row.getColumn(1).getString();
  record.kind = row.getColumn(2).getString();
  record.state = by_name(row.getColumn(3).getString(), JobState::kInterrupted, job_state_name);
  record.n_starts = row.getColumn(4).getInt();
  record.created_ms = row.getColumn(5).getInt64();
  record.started_ms = row.getColumn(6).getInt64();
  record.ended_ms = row.getColumn(7).getInt64();
  if (!row.getColumn(8).isNull()) {
    record.error.emplace(by_name(row.getColumn(8).getString(), ErrorCode::kInternal, error_code_name),
                         row.getColumn(9).getString(), row.getColumn(10).getString());
    record.error->reason = row.getColumn(11).getString();
  }
  return record;
}

}  // namespace

Result<std::unique_ptr<JobStore>> JobStore::open(const fs::path& folder) {
  std::unique_ptr<JobStore> store(new JobStore());
  store->temporary_ = folder.empty();
  store->folder_ = folder;
  std::error_code error;
  if (store->temporary_) {
    std::string name = (fs::temp_directory_path(error) / "hocket-jobs-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr) {
      store->temporary_ = false;  // there is nothing to remove
      return system_error("make the folder", name);
    }
    store->folder_ = name;
  } else if (fs::create_directories(folder, error)) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (error)
    return Error(ErrorCode::kIo, fmt::format("cannot make the folder {}: {}", folder.string(), error.message()),
                 folder.string());
  auto lock = FolderLock::take(store->folder_ / "lock");
  if (!lock && lock.error().code == ErrorCode::kBusy)
    return Error(ErrorCode::kBusy, fmt::format("another server works on the jobs in {}", folder.string()),
                 folder.string());
  if (!lock) return lock.error();
  store->lock_ = std::move(*lock);
  TRY_ASSIGN(store->index_, Database::open(store->folder_ / "jobs.db", kVersions));
  remove_unfinished(store->folder_);
  return store;
}

JobStore::~JobStore() {
  index_.reset();
  std::error_code ignored;
  if (temporary_) fs::remove_all(folder_, ignored);
}

fs::path JobStore::path_of(const std::string& id, Role role, std::size_t i) const {
  return folder_ / fmt::format("{}.{}{}", id, role == Role::kInput ? "in" : "out", i);
}

void JobStore::remove_files(const JobRecord& record, Role role) const {
  std::error_code ignored;
  const std::size_t n = (role == Role::kInput ? record.inputs : record.results).size();
  for (std::size_t i = 0; i < n; ++i) fs::remove(path_of(record.id, role, i), ignored);
}

Result<void> JobStore::check_files(JobRecord& record) {
  const bool waits = !has_ended(record.state);
  const std::vector<JobFile>& files = waits ? record.inputs : record.results;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto file = BlobFile::open(path_of(record.id, waits ? Role::kInput : Role::kResult, i), files[i]);
    if (file) continue;
    log_warn("job {}: {}", record.id, file.error().message);
    record.state = JobState::kFailed;
    record.ended_ms = unix_now_ms();
    record.error = Error(ErrorCode::kIo,
                         fmt::format("the {} \"{}\" of the job was lost", waits ? "input" : "result", files[i].name));
    remove_files(record, Role::kResult);
    return finish(record, {});
  }
  return {};
}

// Only what has a name of ours is ever removed from a folder that the user chose.
void JobStore::remove_strangers(const std::vector<JobRecord>& known) const {
  std::set<fs::path> named;
  for (const JobRecord& record : known) {
    for (std::size_t i = 0; i < record.inputs.size(); ++i) named.insert(path_of(record.id, Role::kInput, i));
    for (std::size_t i = 0; i < record.results.size(); ++i) named.insert(path_of(record.id, Role::kResult, i));
  }
  constexpr std::size_t kIdDigits = 32;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::size_t dot = name.find_first_not_of("0123456789abcdef");
    const std::string_view rest = dot == kIdDigits ? std::string_view(name).substr(dot) : std::string_view();
    if ((rest.starts_with(".in") || rest.starts_with(".out")) && !named.contains(folder_ / name))
      fs::remove(it->path(), ignored);
  }
}

Result<std::vector<JobRecord>> JobStore::load() {
  std::vector<JobRecord> records;
  TRY(index_->transact([&](SQLite::Database& db) -> Result<void> {
    std::map<std::string, std::size_t> at;
    const auto record_at = [&](SQLite::Statement& row) -> JobRecord* {
      const auto found = at.find(row.getColumn(0).getString());
      return found == at.end() ? nullptr : &records[found->second];
    };
    const Error damaged(ErrorCode::kInvalid, "jobs.db is damaged: it names files of a job that it does not know",
                        (folder_ / "jobs.db").string());
    SQLite::Statement jobs(db,
                           "SELECT id, owner, kind, state, starts, created, started, ended, error_code, error_message, "
                           "error_param, error_reason FROM job ORDER BY number");
    while (jobs.executeStep()) {
      records.push_back(record_of(jobs));
      at[records.back().id] = records.size() - 1;
    }
    SQLite::Statement files(db, "SELECT job, role, name, media_type, bytes FROM file ORDER BY job, role, number");
    while (files.executeStep()) {
      JobRecord* record = record_at(files);
      if (!record) return damaged;
      auto& list = files.getColumn(1).getInt() == 0 ? record->inputs : record->results;
      list.push_back({files.getColumn(2).getString(), files.getColumn(3).getString(),
                      static_cast<uint64_t>(files.getColumn(4).getInt64())});
    }
    SQLite::Statement warnings(db, "SELECT job, text FROM warning ORDER BY rowid");
    while (warnings.executeStep()) {
      JobRecord* record = record_at(warnings);
      if (!record) return damaged;
      record->warnings.push_back(warnings.getColumn(1).getString());
    }
    return {};
  }));
  for (JobRecord& record : records) TRY(check_files(record));
  remove_strangers(records);
  return records;
}

Result<void> JobStore::add(JobRecord& record, const std::string& request, std::span<const JobInput> inputs) {
  record.inputs.clear();
  Result<void> done;
  for (std::size_t i = 0; i < inputs.size() && done; ++i) {
    record.inputs.push_back({inputs[i].name, "", inputs[i].bytes.size()});
    done = write_durably(path_of(record.id, Role::kInput, i), inputs[i].bytes);
  }
  if (done)
    done = index_->transact([&](SQLite::Database& db) -> Result<void> {
      SQLite::Statement insert(db,
                               "INSERT INTO job (id, owner, kind, request, state, starts, created, started, ended) "
                               "VALUES (?, ?, ?, ?, ?, 0, ?, 0, 0)");
      insert.bind(1, record.id);
      insert.bind(2, record.owner);
      insert.bind(3, record.kind);
      insert.bind(4, request);
      insert.bind(5, std::string(job_state_name(record.state)));
      insert.bind(6, record.created_ms);
      insert.exec();
      put_files(db, record.id, 0, record.inputs);
      SQLite::Statement warn(db, "INSERT INTO warning VALUES (?, ?)");
      for (const std::string& text : record.warnings) {
        warn.bind(1, record.id);
        warn.bind(2, text);
        warn.exec();
        warn.reset();
      }
      return {};
    });
  if (!done) remove_files(record, Role::kInput);
  return done;
}

Result<void> JobStore::update(const JobRecord& record) {
  return index_->transact([&](SQLite::Database& db) -> Result<void> {
    put_state(db, record);
    return {};
  });
}

Result<void> JobStore::finish(JobRecord& record, std::span<const JobOutput> outputs) {
  record.results.clear();
  Result<void> done;
  for (std::size_t i = 0; i < outputs.size() && done; ++i) {
    record.results.push_back({outputs[i].name, outputs[i].media_type, outputs[i].bytes.size()});
    done = write_durably(path_of(record.id, Role::kResult, i), outputs[i].bytes);
  }
  if (done)
    done = index_->transact([&](SQLite::Database& db) -> Result<void> {
      put_state(db, record);
      SQLite::Statement forget(db, "DELETE FROM file WHERE job=?");
      forget.bind(1, record.id);
      forget.exec();
      put_files(db, record.id, 1, record.results);
      return {};
    });
  remove_files(record, done ? Role::kInput : Role::kResult);
  (done ? record.inputs : record.results).clear();
  return done;
}

Result<void> JobStore::remove(const JobRecord& record) {
  TRY(index_->transact([&](SQLite::Database& db) -> Result<void> {
    SQLite::Statement forget(db, "DELETE FROM job WHERE id=?");
    forget.bind(1, record.id);
    forget.exec();
    return {};
  }));
  remove_files(record, Role::kInput);
  remove_files(record, Role::kResult);
  return {};
}

Result<std::string> JobStore::request(const JobRecord& record) {
  std::string text;
  TRY(index_->transact([&](SQLite::Database& db) -> Result<void> {
    SQLite::Statement select(db, "SELECT request FROM job WHERE id=?");
    select.bind(1, record.id);
    if (!select.executeStep())
      return Error(ErrorCode::kIo, fmt::format("the index does not know job {} any more", record.id), record.id);
    text = select.getColumn(0).getString();
    return {};
  }));
  return text;
}

Result<BlobFile> JobStore::open_input(const JobRecord& record, std::size_t i) const {
  return BlobFile::open(path_of(record.id, Role::kInput, i), record.inputs.at(i));
}

Result<BlobFile> JobStore::open_result(const JobRecord& record, std::size_t i) const {
  return BlobFile::open(path_of(record.id, Role::kResult, i), record.results.at(i));
}

}  // namespace hocket
