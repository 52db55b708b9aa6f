// weights/shard_set.h: the files of a model that is split into shards, opened and merged.
//
// Shards are named PREFIX-00001-of-00003.gguf. Each says its place with split.no (from 0), split.count and
// split.tensors.count; the first one holds all metadata.
//
// Errors   those of gguf.h, with the file in the message.
// Cost     the headers of all shards; of the named one twice when it is not the first.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"
#include "weights/gguf_parse.h"
#include "weights/model_file.h"

namespace hocket {

struct ShardSet {
  std::vector<std::unique_ptr<ModelFile>> files;
  GgufHeader header;  // of the first shard, with the tensors of all
};

// A single file is a set of one.
Result<ShardSet> open_shards(const std::string& path, const GgufLimits& limits);

// How many shards the file with this metadata belongs to: 1 when it is whole.
Result<std::size_t> shard_count(const Metadata& metadata, const GgufLimits& limits);

// "prefix-00002-of-00005.gguf"; index counts from 0.
std::string shard_path(std::string_view prefix, std::size_t index, std::size_t count);

}  // namespace hocket
