// weights/gguf_format.h: the numbers of the GGUF container that its reader and writer share.
//
// Source   the GGUF specification in ggml's docs. A file is: magic, version, tensor count, key count, the keys, the
//          tensor directory, padding to the alignment, the data. All numbers are little-endian.
#pragma once

#include <ggml.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hocket {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufOldestVersion = 2;
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr std::size_t kGgufDefaultAlignment = 32;
inline constexpr std::size_t kGgufMaxKeyBytes = 65'535;

inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr std::string_view kSplitIndexKey = "split.no";  // counted from 0; file names count from 1
inline constexpr std::string_view kSplitCountKey = "split.count";
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";  // over all shards

enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// False for ids that ggml does not know or has given up; those must not reach ggml's own functions.
bool is_tensor_type(uint32_t id);

// The bytes of a tensor, or 0 when a size is not positive, a row is no whole number of blocks, or the number of bytes
// or elements passes 2^63.
uint64_t tensor_bytes(ggml_type type, const std::array<int64_t, 4>& ne);

inline bool is_alignment(uint64_t n, std::size_t max) {
  return n <= max && std::has_single_bit(n);
}

inline uint64_t aligned_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace hocket
