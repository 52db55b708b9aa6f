// weights/gguf_parse.h: the header of one GGUF file, read and checked.
//
// Threads  pure function of the source.
// Errors   kBadModel naming the key, the tensor or the byte offset; kUnsupported for other byte orders and versions;
//          kOutOfMemory; kIo from the source.
// Cost     one pass over the header. Counts and lengths are compared with the bytes that are left before anything is
//          allocated for them: memory stays below eight times the header, whatever the file claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "weights/byte_cursor.h"
#include "weights/gguf.h"
#include "weights/metadata.h"

namespace hocket {

struct GgufHeader {
  int version = 0;
  std::size_t alignment = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // in file order, offsets absolute, every tensor inside the source
};

Result<GgufHeader> parse_gguf_header(const ByteSource& source, const GgufLimits& limits);

// Positions in `tensors`, sorted by name; an Error names a name that occurs twice.
Result<std::vector<uint32_t>> index_by_name(const std::vector<TensorInfo>& tensors);

}  // namespace hocket
