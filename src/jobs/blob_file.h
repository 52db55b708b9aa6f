// jobs/blob_file.h: an open file of a job. It can be read to its end even when the job is forgotten meanwhile.
//
// Owns     the descriptor.
// Threads  one user at a time.
// Errors   open(): kIo with the path, also when the file has another size than is known of it. read(): kIo.
#pragma once

#include <filesystem>
#include <span>
#include <utility>

#include "jobs/job.h"

namespace hocket {

class BlobFile {
 public:
  static Result<BlobFile> open(const std::filesystem::path& path, JobFile file);
  BlobFile(BlobFile&& other) noexcept : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)) {}
  BlobFile& operator=(BlobFile&& other) noexcept;
  ~BlobFile();

  const JobFile& file() const { return file_; }
  // The next bytes; 0 at the end.
  Result<std::size_t> read(std::span<std::byte> to);
  // All that was not read yet.
  Result<std::vector<std::byte>> read_rest();

 private:
  BlobFile(JobFile file, int fd) : file_(std::move(file)), fd_(fd) {}

  JobFile file_;
  int fd_;
};

}  // namespace hocket
