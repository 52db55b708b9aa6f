// jobs/job_store.h: jobs on disk: an index (jobs.db) and a file for each input and result, in one folder.
//
// Files are written before the index names them and removed after it has forgotten them, so a kill at any moment leaves
// at most files that nobody names; load() removes those.
//
// Owns     the folder while it is open: a second store of the same folder is refused. Without a folder it makes one
//          among the temporary files and removes it at the end.
// Threads  any, but one change of the same job at a time.
// Errors   kIo with the path; open(): kBusy when another process has the folder, kInvalid when jobs.db is damaged or of
//          a newer program.
// Cost     every change waits for the disk.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/database.h"
#include "base/folder_lock.h"
#include "jobs/blob_file.h"
#include "jobs/job.h"

namespace hocket {

class JobStore {
 public:
  static Result<std::unique_ptr<JobStore>> open(const std::filesystem::path& folder);
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  // All jobs in the order in which they were added. An ended job whose results are not all there, and a waiting one
  // whose inputs are not, has failed. Removes files that belong to no job.
  Result<std::vector<JobRecord>> load();

  // The inputs join `record`.
  Result<void> add(JobRecord& record, const std::string& request, std::span<const JobInput> inputs);
  // State, starts, times, error.
  Result<void> update(const JobRecord& record);
  // The same, and the results join `record`; its inputs are forgotten.
  Result<void> finish(JobRecord& record, std::span<const JobOutput> outputs);
  Result<void> remove(const JobRecord& record);

  Result<std::string> request(const JobRecord& record);
  Result<BlobFile> open_input(const JobRecord& record, std::size_t i) const;
  Result<BlobFile> open_result(const JobRecord& record, std::size_t i) const;

 private:
  JobStore() = default;
  enum class Role { kInput, kResult };
  std::filesystem::path path_of(const std::string& id, Role role, std::size_t i) const;
  void remove_files(const JobRecord& record, Role role) const;
  Result<void> check_files(JobRecord& record);
  void remove_strangers(const std::vector<JobRecord>& known) const;

  std::filesystem::path folder_;
  bool temporary_ = false;
  FolderLock lock_;
  std::unique_ptr<Database> index_;
};

}  // namespace hocket
