#include "weights/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "weights/gguf_parse.h"
#include "weights/model_file.h"
#include "weights/shard_set.h"

namespace hocket {
namespace {

Result<void> check_range(const TensorInfo& tensor, uint64_t offset, uint64_t n) {
  if (offset <= tensor.n_bytes && n <= tensor.n_bytes - offset) return {};
  return Error(ErrorCode::kInternal,
               fmt::format("read of {} bytes at {} in a tensor of {} bytes", n, offset, tensor.n_bytes), tensor.name);
}

std::span<const std::byte> part_of(std::span<const std::byte> bytes, const TensorInfo& tensor) {
  if (tensor.offset_bytes > bytes.size() || tensor.n_bytes > bytes.size() - tensor.offset_bytes) return {};
  return bytes.subspan(static_cast<std::size_t>(tensor.offset_bytes), static_cast<std::size_t>(tensor.n_bytes));
}

class FileSet : public GgufFile {
 public:
  static Result<std::unique_ptr<GgufFile>> create(ShardSet set, const GgufOptions& options) {
    auto file = std::make_unique<FileSet>();
    file->adopt(std::move(set));
    TRY(file->index_tensors());
    if (options.use_mlock && !options.use_mmap) log_warn("mlock has no effect on a model file that is not mapped");
    for (auto& shard : file->shards_) {
      if (!options.use_mmap) break;
      TRY(shard->map());
      if (options.use_mlock) shard->lock();
    }
    return std::unique_ptr<GgufFile>(std::move(file));
  }

  std::span<const std::byte> data(const TensorInfo& tensor) const override {
    return part_of(shard_of(tensor).mapped(), tensor);
  }

  // Even of a mapped file by pread: a shrunken file is an error here and no signal.
  Result<void> read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    TRY(check_range(tensor, offset, out.size()));
    return shard_of(tensor).read(tensor.offset_bytes + offset, out);
  }

  void drop_pages(const TensorInfo& tensor) const override {
    shard_of(tensor).drop_pages(tensor.offset_bytes, tensor.n_bytes);
  }

 private:
  void adopt(ShardSet set) {
    shards_ = std::move(set.files);
    metadata_ = std::move(set.header.metadata);
    tensors_ = std::move(set.header.tensors);
    version_ = set.header.version;
    alignment_ = set.header.alignment;
    n_shards_ = shards_.size();
    for (const auto& shard : shards_) file_bytes_ += shard->size();
  }

  const ModelFile& shard_of(const TensorInfo& tensor) const {
    CHECK(tensor.shard < shards_.size());
    return *shards_[tensor.shard];
  }

  std::vector<std::unique_ptr<ModelFile>> shards_;
};

class Image : public GgufFile {
 public:
  static Result<std::unique_ptr<GgufFile>> create(std::span<const std::byte> image, const GgufLimits& limits) {
    auto file = std::make_unique<Image>();
    TRY_ASSIGN(GgufHeader header, parse_gguf_header(ImageSource(image), limits));
    TRY_ASSIGN(const std::size_t n_shards, shard_count(header.metadata, limits));
    if (n_shards > 1)
      return Error(ErrorCode::kUnsupported, fmt::format("one shard of {}: open the set by file name", n_shards));
    file->image_ = image;
    file->metadata_ = std::move(header.metadata);
    file->tensors_ = std::move(header.tensors);
    file->version_ = header.version;
    file->alignment_ = header.alignment;
    file->file_bytes_ = image.size();
    TRY(file->index_tensors());
    return std::unique_ptr<GgufFile>(std::move(file));
  }

  std::span<const std::byte> data(const TensorInfo& tensor) const override { return part_of(image_, tensor); }

  Result<void> read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    TRY(check_range(tensor, offset, out.size()));
    return ImageSource(image_).read(tensor.offset_bytes + offset, out);
  }

  void drop_pages(const TensorInfo&) const override {}

 private:
  std::span<const std::byte> image_;
};

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path, const GgufOptions& options) {
  try {
    TRY_ASSIGN(ShardSet set, open_shards(path, options.limits));
    auto file = FileSet::create(std::move(set), options);
    if (!file && file.error().message.find(path) == std::string::npos)
      return Error(file.error().code, fmt::format("{}: {}", path, file.error().message), file.error().param);
    return file;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, fmt::format("{}: no memory for its tensor directory", path), path);
  }
}

Result<std::unique_ptr<GgufFile>> GgufFile::parse(std::span<const std::byte> image, const GgufLimits& limits) {
  try {
    return Image::create(image, limits);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, "no memory for the tensor directory of the model file");
  }
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  const auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [this](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
}

Result<void> GgufFile::index_tensors() {
  TRY_ASSIGN(by_name_, index_by_name(tensors_));
  return {};
}

}  // namespace hocket
