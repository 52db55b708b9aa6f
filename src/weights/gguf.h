// weights/gguf.h: reads GGUF model files (versions 2 and 3, one file or shards) within strict bounds.
//
// This is the security boundary for model files: sizes, counts, offsets and types are checked before anything is
// allocated from them, so that no file, however damaged, crashes or exhausts the process. Source: the GGUF
// specification in ggml's docs; limits from serving.md §5.
//
// Owns     the mapping and descriptor of every shard; tensor data stay in the file.
// Threads  const after open(); read() from any thread.
// Errors   kNotFound, kIo; kBadModel naming the key, the tensor or the byte offset; kUnsupported for big-endian files
// and
//          other versions. A file that shrinks while it is open makes read() fail with kIo, but touching data() past
//          its new end raises SIGBUS: replace model files by rename, or open them without mmap.
// Cost     open() reads the header only. data() is free with mmap; read() copies with pread.
#pragma once

#include <ggml.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/metadata.h"

namespace hocket {

struct GgufLimits {
  std::size_t max_string_bytes = 16u << 20;
  std::size_t max_array_bytes = 64u << 20;  // of one array, in the file and as held in memory
  std::size_t max_keys = 65'536;
  std::size_t max_tensors = 65'536;
  std::size_t max_name_bytes = 256;
  std::size_t max_alignment = 1u << 20;
  std::size_t max_shards = 1'024;
};

struct GgufOptions {
  bool use_mmap = true;    // false: read() with pread, nothing mapped
  bool use_mlock = false;  // keep mapped pages in memory; a refusal by the system, or use_mmap = false, is a warning
  GgufLimits limits;
};

struct TensorInfo {
  std::string name;
  ggml_type type = GGML_TYPE_F32;
  int n_dims = 0;                         // 1..4
  std::array<int64_t, 4> ne{1, 1, 1, 1};  // ggml order: ne[0] is contiguous
  std::size_t shard = 0;                  // which file
  uint64_t offset_bytes = 0;              // absolute, in that file
  uint64_t n_bytes = 0;
};

class GgufFile {
 public:
  // Opens `path`. A file that says it is one shard of several is named PREFIX-00002-of-00005.gguf and opens the whole
  // set, whichever shard was named; the metadata are those of the first shard.
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path, const GgufOptions& options = {});
  // Parses a file image in memory (tests, fuzzing). `image` must outlive the object. One shard of several:
  // kUnsupported.
  static Result<std::unique_ptr<GgufFile>> parse(std::span<const std::byte> image, const GgufLimits& limits = {});
  virtual ~GgufFile() = default;

  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in file order, shard by shard
  const TensorInfo* find(std::string_view name) const;
  int version() const { return version_; }
  std::size_t alignment() const { return alignment_; }
  std::size_t n_shards() const { return n_shards_; }
  uint64_t file_bytes() const { return file_bytes_; }  // all shards

  // The mapped bytes of a tensor; empty when the file is not mapped.
  virtual std::span<const std::byte> data(const TensorInfo& tensor) const = 0;
  // Copies out.size() bytes from `offset` inside the tensor; kInternal when that passes its n_bytes.
  virtual Result<void> read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const = 0;
  // Tells the system that these mapped bytes will not be read again soon. Nothing when locked or not mapped.
  virtual void drop_pages(const TensorInfo& tensor) const = 0;

 protected:
  // Fills by_name_; an Error when a name occurs twice.
  Result<void> index_tensors();

  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;  // positions in tensors_, sorted by name
  int version_ = 3;
  std::size_t alignment_ = 32;
  std::size_t n_shards_ = 1;
  uint64_t file_bytes_ = 0;
};

}  // namespace hocket
