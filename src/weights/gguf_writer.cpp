#include "weights/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/durable_file.h"
#include "weights/gguf_encode.h"
#include "weights/gguf_format.h"
#include "weights/shard_set.h"

namespace hocket {
namespace {

Error bad_tensor(const std::string& name, std::string_view what) {
  return Error(ErrorCode::kInvalid, fmt::format("tensor {}: {}", printable_name(name), what), name);
}

Result<void> write_file(const std::string& path, const std::function<Result<void>(const ByteSink&)>& fill) {
  TRY_ASSIGN(const auto file, DurableFile::create(path, /*for_all=*/true));
  TRY(fill([&file](std::span<const std::byte> bytes) { return file->append(bytes); }));
  return file->commit();
}

Result<void> write_padding(uint64_t position, std::size_t alignment, const ByteSink& sink) {
  return sink(std::vector<std::byte>(static_cast<std::size_t>(aligned_up(position, alignment) - position)));
}

}  // namespace

Result<void> GgufWriter::add_stream(std::string name, ggml_type type, const std::vector<int64_t>& shape,
                                    TensorStream stream) {
  const GgufLimits limits;
  if (name.empty() || name.size() > limits.max_name_bytes || name.find('\0') != std::string::npos)
    return bad_tensor(name, fmt::format("a name has 1 to {} bytes, none of them zero", limits.max_name_bytes));
  if (!is_tensor_type(static_cast<uint32_t>(type))) return bad_tensor(name, "unknown type");
  TensorInfo info;
  if (shape.empty() || shape.size() > info.ne.size()) return bad_tensor(name, "a shape has one to four sizes");
  std::copy(shape.begin(), shape.end(), info.ne.begin());
  info.n_dims = static_cast<int>(shape.size());
  info.type = type;
  info.n_bytes = tensor_bytes(type, info.ne);
  if (info.n_bytes == 0)
    return bad_tensor(name,
                      fmt::format("the shape [{}] does not fit type {}", fmt::join(shape, ", "), ggml_type_name(type)));
  if (!names_.insert(name).second) return bad_tensor(name, "added twice");
  info.name = std::move(name);
  items_.push_back({std::move(info), std::move(stream)});
  return {};
}

Result<void> GgufWriter::add(std::string name, ggml_type type, const std::vector<int64_t>& shape, TensorMaker make) {
  return add_stream(std::move(name), type, shape, [make = std::move(make)](const ByteSink& sink) -> Result<void> {
    TRY_ASSIGN(const std::vector<std::byte> data, make());
    return sink(data);
  });
}

Result<void> GgufWriter::add_bytes(std::string name, ggml_type type, const std::vector<int64_t>& shape,
                                   std::vector<std::byte> data) {
  return add_stream(std::move(name), type, shape,
                    [data = std::move(data)](const ByteSink& sink) { return sink(data); });
}

Result<std::size_t> GgufWriter::alignment() const {
  const GgufLimits limits;
  TRY_ASSIGN(const int64_t value, metadata_.integer_or(kGgufAlignmentKey, kGgufDefaultAlignment));
  if (value < 1 || !is_alignment(static_cast<uint64_t>(value), limits.max_alignment))
    return Error(ErrorCode::kInvalid,
                 fmt::format("the alignment {} is not a power of two up to {}", value, limits.max_alignment),
                 std::string(kGgufAlignmentKey));
  return static_cast<std::size_t>(value);
}

Result<void> GgufWriter::write_items(const Metadata& metadata, std::span<const Item> items,
                                     const ByteSink& sink) const {
  TRY_ASSIGN(const std::size_t align, alignment());
  std::vector<TensorInfo> tensors;
  uint64_t position = 0;
  for (const Item& item : items) {
    tensors.push_back(item.info);
    tensors.back().offset_bytes = position;
    position = aligned_up(position + item.info.n_bytes, align);
  }
  TRY_ASSIGN(const std::vector<std::byte> header, encode_gguf_header(metadata, tensors));
  TRY(sink(header));
  TRY(write_padding(header.size(), align, sink));
  for (const Item& item : items) {
    uint64_t n_left = item.info.n_bytes;
    const auto counted = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (bytes.size() > n_left)
        return bad_tensor(item.info.name, fmt::format("more than its {} bytes", item.info.n_bytes));
      n_left -= bytes.size();
      return sink(bytes);
    };
    TRY(item.stream(counted));
    if (n_left != 0)
      return bad_tensor(item.info.name, fmt::format("{} of its {} bytes missing", n_left, item.info.n_bytes));
    TRY(write_padding(item.info.n_bytes, align, sink));
  }
  return {};
}

Result<void> GgufWriter::write(const std::string& path) const {
  return write_file(path, [this](const ByteSink& sink) { return write_items(metadata_, items_, sink); });
}

Result<std::vector<std::byte>> GgufWriter::image() const {
  std::vector<std::byte> out;
  TRY(write_items(metadata_, items_, [&out](std::span<const std::byte> bytes) -> Result<void> {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return out;
}

Result<std::vector<std::string>> GgufWriter::write_shards(const std::string& prefix, std::size_t n_shards) const {
  const GgufLimits limits;
  if (n_shards < 1 || n_shards > limits.max_shards)
    return Error(ErrorCode::kInvalid, fmt::format("{} shards; 1 to {} are allowed", n_shards, limits.max_shards),
                 "n_shards");
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < n_shards; ++i) {
    Metadata metadata;
    if (i == 0) metadata = metadata_;
    if (const MetadataValue* value = metadata_.find(kGgufAlignmentKey))
      metadata.set(std::string(kGgufAlignmentKey), *value);
    metadata.set(std::string(kSplitIndexKey), static_cast<int64_t>(i));
    metadata.set(std::string(kSplitCountKey), static_cast<int64_t>(n_shards));
    metadata.set(std::string(kSplitTensorsKey), static_cast<int64_t>(items_.size()));
    const std::size_t first = items_.size() * i / n_shards;
    const std::size_t last = items_.size() * (i + 1) / n_shards;
    const auto items = std::span(items_).subspan(first, last - first);
    paths.push_back(shard_path(prefix, i, n_shards));
    TRY(write_file(paths.back(), [&](const ByteSink& sink) { return write_items(metadata, items, sink); }));
  }
  return paths;
}

}  // namespace hocket
