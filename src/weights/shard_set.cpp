#include "weights/shard_set.h"

#include <fmt/format.h>

#include <utility>

#include "weights/gguf_format.h"

namespace hocket {
namespace {

struct OpenShard {
  std::unique_ptr<ModelFile> file;
  GgufHeader header;
  std::size_t index = 0;
  std::size_t count = 1;
};

Error at_path(const std::string& path, Error error) {
  if (!error.message.starts_with(path)) error.message = fmt::format("{}: {}", path, error.message);
  if (error.param.empty()) error.param = path;
  return error;
}

Result<OpenShard> read_shard(const std::string& path, const GgufLimits& limits) {
  OpenShard shard;
  TRY_ASSIGN(shard.file, ModelFile::open(path));
  TRY_ASSIGN(shard.header, parse_gguf_header(*shard.file, limits));
  TRY_ASSIGN(shard.count, shard_count(shard.header.metadata, limits));
  if (shard.count > 1) {
    TRY_ASSIGN(const int64_t index,
               shard.header.metadata.integer(kSplitIndexKey, 0, static_cast<int64_t>(shard.count) - 1));
    shard.index = static_cast<std::size_t>(index);
  }
  return shard;
}

Result<OpenShard> open_shard(const std::string& path, const GgufLimits& limits) {
  auto shard = read_shard(path, limits);
  if (!shard) return at_path(path, std::move(shard).error());
  return shard;
}

Error bad_split(const std::string& path, std::string_view key, std::string_view what) {
  return Error(ErrorCode::kBadModel, fmt::format("{}: metadata key {}: {}", path, key, what), std::string(key));
}

// What comes before "-00002-of-00005.gguf"; an Error when the name does not say what the keys say.
Result<std::string> prefix_of(const std::string& path, const OpenShard& shard) {
  const std::string ending = shard_path("", shard.index, shard.count);
  if (path.size() > ending.size() && path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  return bad_split(
      path, kSplitIndexKey,
      fmt::format("this is shard {} of {}, so its name has to end with {}", shard.index + 1, shard.count, ending));
}

Result<void> append_shard(ShardSet& set, OpenShard shard, const GgufLimits& limits) {
  if (set.header.tensors.size() + shard.header.tensors.size() > limits.max_tensors)
    return Error(ErrorCode::kBadModel, fmt::format("more than {} tensors in all shards", limits.max_tensors));
  for (TensorInfo& tensor : shard.header.tensors) {
    tensor.shard = set.files.size();
    set.header.tensors.push_back(std::move(tensor));
  }
  set.files.push_back(std::move(shard.file));
  return {};
}

}  // namespace

Result<std::size_t> shard_count(const Metadata& metadata, const GgufLimits& limits) {
  TRY_ASSIGN(const int64_t count, metadata.integer_or(kSplitCountKey, 1, 0, static_cast<int64_t>(limits.max_shards)));
  return count == 0 ? std::size_t{1} : static_cast<std::size_t>(count);
}

std::string shard_path(std::string_view prefix, std::size_t index, std::size_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, index + 1, count);
}

Result<ShardSet> open_shards(const std::string& path, const GgufLimits& limits) {
  TRY_ASSIGN(OpenShard first, open_shard(path, limits));
  ShardSet set;
  if (first.count == 1) {
    set.files.push_back(std::move(first.file));
    set.header = std::move(first.header);
    return set;
  }
  const std::size_t count = first.count;
  TRY_ASSIGN(const std::string prefix, prefix_of(path, first));
  const std::string first_path = shard_path(prefix, 0, count);
  if (first.index != 0) {
    TRY_ASSIGN(first, open_shard(first_path, limits));
    if (first.count != count)
      return bad_split(first_path, kSplitCountKey, fmt::format("{} here, {} in {}", first.count, count, path));
    if (first.index != 0)
      return bad_split(first_path, kSplitIndexKey, fmt::format("{} in the first shard", first.index));
  }
  set.files.push_back(std::move(first.file));
  set.header = std::move(first.header);
  auto n_tensors = set.header.metadata.integer(kSplitTensorsKey);
  if (!n_tensors) return at_path(first_path, std::move(n_tensors).error());
  for (std::size_t i = 1; i < count; ++i) {
    const std::string shard_file = shard_path(prefix, i, count);
    TRY_ASSIGN(OpenShard shard, open_shard(shard_file, limits));
    if (shard.count != count)
      return bad_split(shard_file, kSplitCountKey, fmt::format("{} here, {} in the first shard", shard.count, count));
    if (shard.index != i)
      return bad_split(shard_file, kSplitIndexKey, fmt::format("{} here, expected {}", shard.index, i));
    TRY(append_shard(set, std::move(shard), limits));
  }
  if (*n_tensors != static_cast<int64_t>(set.header.tensors.size()))
    return bad_split(first_path, kSplitTensorsKey,
                     fmt::format("{} announced, {} found in all shards", *n_tensors, set.header.tensors.size()));
  return set;
}

}  // namespace hocket
