// weights/model_file.h: one regular file of a model, read by position and optionally mapped.
//
// Owns     the descriptor and the mapping.
// Threads  const after open() and map(): any thread.
// Errors   kNotFound, kIo (a folder, a pipe, no permission, shorter than it was at open()); `param` is the path.
// Cost     read() is one pread as a rule. The mapping is read-only and shared with the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "weights/byte_cursor.h"

namespace hocket {

class ModelFile : public ByteSource {
 public:
  static Result<std::unique_ptr<ModelFile>> open(const std::string& path);
  ~ModelFile() override;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  uint64_t size() const override { return size_; }
  Result<void> read(uint64_t offset, std::span<std::byte> out) const override;

  Result<void> map();
  // Keeps the mapping in memory. A refusal is logged: it costs speed, not correctness.
  void lock();
  std::span<const std::byte> mapped() const { return mapped_; }
  // Whole pages inside the range leave this process; the page cache keeps them while there is room.
  void drop_pages(uint64_t offset, uint64_t n_bytes) const;

 private:
  ModelFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  uint64_t size_;
  std::span<std::byte> mapped_;
  bool locked_ = false;
};

}  // namespace hocket
