// weights/gguf_value.h: one metadata value of a GGUF file, read from its type id on.
//
// Errors   kBadModel naming the key and the byte offset.
// Cost     memory of at most eight times the value's bytes in the file.
#pragma once

#include <string_view>

#include "base/result.h"
#include "weights/byte_cursor.h"
#include "weights/gguf.h"
#include "weights/metadata.h"

namespace hocket {

// `key` is used in messages only.
Result<MetadataValue> read_gguf_value(ByteCursor& cursor, const GgufLimits& limits, std::string_view key);

}  // namespace hocket
