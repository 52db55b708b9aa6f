#include <gtest/gtest.h>

#include <memory>

#include "weights/gguf.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

constexpr uint64_t kHuge = ~uint64_t{0};
constexpr uint32_t kU32 = 4, kBool = 7, kString = 8, kArray = 9;
constexpr uint32_t kF32 = GGML_TYPE_F32;

struct Case {
  const char* name;
  RawGguf file;
  ErrorCode code;
  const char* param;    // the key or tensor that the error is about
  const char* message;  // part of it
};

RawGguf raw() {
  return {};
}
RawGguf one_key(std::string_view name) {
  return raw().head(0, 1).text(name);
}
RawGguf one_array(uint32_t item_type, uint64_t n) {
  return one_key("list").put(kArray).put(item_type).put(n);
}
// A tensor table of one, then 64 bytes of data.
RawGguf one_tensor(std::string_view name, std::vector<int64_t> ne, uint32_t type, uint64_t offset) {
  return raw().head(1, 0).tensor(name, std::move(ne), type, offset).pad().zeros(64);
}
RawGguf alignment(uint32_t value) {
  return raw().head(1, 1).key<uint32_t>("general.alignment", kU32, value).tensor("t", {1}, kF32, 0).zeros(4096);
}

std::vector<Case> cases() {
  constexpr auto bad = ErrorCode::kBadModel;
  constexpr auto unsupported = ErrorCode::kUnsupported;
  return {
      {"empty", raw(), bad, "", "empty"},
      {"magic cut", raw().raw("GG"), bad, "", "the file ends inside the magic number"},
      {"other magic", raw().raw("PK\x03\x04zip"), bad, "", "starts with bytes 50 4b 03 04"},
      {"version cut", raw().raw("GGUF").put<uint16_t>(3), bad, "", "inside the version"},
      {"version 0", raw().head(0, 0, 0), unsupported, "", "GGUF version 0"},
      {"version 1", raw().head(0, 0, 1), unsupported, "", "GGUF version 1"},
      {"version 4", raw().head(0, 0, 4), unsupported, "", "GGUF version 4"},
      {"big-endian", raw().raw("GGUF").raw(std::string("\0\0\0\3", 4)).zeros(64), unsupported, "", "big-endian"},
      {"no counts", raw().raw("GGUF").put<uint32_t>(3), bad, "", "the number of tensors"},
      {"too many tensors", raw().head(65'537, 0), bad, "", "65537 tensors (byte 8)"},
      {"2^64-1 tensors", raw().head(kHuge, 0), bad, "", "18446744073709551615 tensors"},
      {"too many keys", raw().head(0, 65'537), bad, "", "65537 metadata keys (byte 16)"},
      {"2^64-1 keys", raw().head(0, kHuge), bad, "", "metadata keys"},
      {"tensors that are not there", raw().head(60'000, 0).zeros(100), bad, "", "inside its tables"},
      {"keys that are not there", raw().head(0, 60'000).zeros(100), bad, "", "inside its tables"},

      {"key length 2^64-1", raw().head(0, 1).put(kHuge).zeros(32), bad, "",
       "a metadata key at byte 24 has 18446744073709551615"},
      {"key longer than allowed", raw().head(0, 1).put<uint64_t>(65'536).zeros(70'000), bad, "", "at most 65535"},
      {"key past the end", raw().head(0, 1).put<uint64_t>(500).zeros(32), bad, "",
       "500 bytes needed at byte 32, 32 left"},
      {"empty key", one_key("").put(kU32).put<uint32_t>(1).zeros(9), bad, "", "empty metadata key at byte 24"},
      {"value type 13", one_key("k").put<uint32_t>(13).zeros(64), bad, "k", "unknown value type 13 at byte 33"},
      {"value cut", one_key("some.key").put<uint32_t>(10).put<uint32_t>(1), bad, "some.key",
       "the value of metadata key some.key"},
      {"bool 2", one_key("k").put(kBool).put<uint8_t>(2).zeros(8), bad, "k", "2 at byte 37 is not a boolean"},
      {"string length 2^64-1", one_key("k").put(kString).put(kHuge).zeros(8), bad, "k", "at most 16777216"},
      {"string past the end", one_key("k").put(kString).put<uint64_t>(1'000'000).zeros(8), bad, "k",
       "1000000 bytes needed"},
      {"array of arrays", one_array(kArray, 1).zeros(32), bad, "list", "array of arrays at byte 40"},
      {"array of type 99", one_array(99, 1).zeros(32), bad, "list", "unknown array element type 99"},
      {"array of 2^64-1 bytes", one_array(0, kHuge).zeros(32), bad, "list", "needs more than 67108864 bytes"},
      {"array of 2^61 longs", one_array(10, uint64_t{1} << 61).zeros(32), bad, "list", "needs more than"},
      {"array of 2^60 strings", one_array(kString, uint64_t{1} << 60).zeros(32), bad, "list", "needs more than"},
      {"array past the end", one_array(kU32, 1'000).zeros(32), bad, "list", "4000 bytes needed"},
      {"strings past the end", one_array(kString, 1'000).zeros(32), bad, "list", "8000 bytes needed"},
      {"bad string in array", one_array(kString, 2).text("a").put(kHuge).zeros(32), bad, "list",
       "18446744073709551615"},
      {"bool array", one_array(kBool, 3).put<uint8_t>(1).put<uint8_t>(9).zeros(8), bad, "list", "element 1 (9)"},
      {"u64 array past 2^63", one_array(10, 1).put(kHuge), bad, "list", "passes 2^63"},
      {"key twice", raw().head(0, 2).key<uint32_t>("k", kU32, 1).key<uint32_t>("k", kU32, 1), bad, "k", "occurs twice"},
      {"control characters in a key", raw().head(0, 2).key<uint32_t>("a\nb", kU32, 1).key<uint32_t>("a\nb", kU32, 1),
       bad, "a?b", "metadata key a?b occurs twice"},

      {"alignment 0", alignment(0), bad, "general.alignment", "0 is not a power of two"},
      {"alignment 24", alignment(24), bad, "general.alignment", "24 is not a power of two"},
      {"alignment 2 MiB", alignment(2u << 20), bad, "general.alignment", "up to 1048576"},
      {"alignment of another type", raw().head(0, 1).text("general.alignment").put(kString).text("32"), bad,
       "general.alignment", "expected an integer"},

      {"tensor name too long", one_tensor(std::string(257, 'n'), {1}, kF32, 0), bad, "", "at most 256"},
      {"tensor name empty", one_tensor("", {1}, kF32, 0), bad, "", "the tensor name at byte 24 is empty"},
      {"tensor name with zero", one_tensor(std::string_view("a\0b", 3), {1}, kF32, 0), bad, "", "zero byte"},
      {"tensor name length 2^64-1", raw().head(1, 0).put(kHuge).zeros(64), bad, "", "a tensor name at byte 24"},
      {"five dimensions", one_tensor("t", {1, 1, 1, 1, 1}, kF32, 0), bad, "t", "5 dimensions"},
      {"2^32-1 dimensions", raw().head(1, 0).text("t").put<uint32_t>(~0u).zeros(64), bad, "t", "4294967295 dimensions"},
      {"size 0", one_tensor("t", {4, 0}, kF32, 0), bad, "t", "dimension 1 has size 0"},
      {"size -1", one_tensor("t", {-1}, kF32, 0), bad, "t", "dimension 0 has size -1"},
      {"type removed", one_tensor("t", {32}, 4, 0), bad, "t", "unknown or removed tensor type 4"},
      {"type removed later", one_tensor("t", {32}, 36, 0), bad, "t", "tensor type 36"},
      {"type unknown", one_tensor("t", {32}, GGML_TYPE_COUNT, 0), bad, "t", "unknown or removed"},
      {"type 2^32-1", one_tensor("t", {32}, ~0u, 0), bad, "t", "4294967295"},
      {"half a block", one_tensor("t", {16}, GGML_TYPE_Q4_0, 0), bad, "t",
       "rows of 16 elements are not whole blocks of 32"},
      {"bytes overflow", one_tensor("t", {int64_t{1} << 62}, kF32, 0), bad, "t", "its size overflows"},
      {"product overflows to 0", one_tensor("t", {int64_t{1} << 32, int64_t{1} << 32}, kF32, 0), bad, "t", "overflows"},
      {"elements overflow", one_tensor("t", {int64_t{1} << 62, 3}, GGML_TYPE_Q1_0, 0), bad, "t", "overflows"},
      {"larger than the file", one_tensor("t", {1'000'000}, kF32, 0), bad, "t",
       "its 4000000 bytes at offset 0 pass the end"},
      {"one byte too many", one_tensor("t", {65}, GGML_TYPE_I8, 0), bad, "t", "pass the end"},
      {"offset past the end", one_tensor("t", {1}, kF32, 4096), bad, "t", "pass the end"},
      {"offset 2^64-32", one_tensor("t", {16}, kF32, kHuge - 31), bad, "t", "pass the end"},
      {"offset unaligned", one_tensor("t", {1}, kF32, 8), bad, "t", "offset 8 is not a multiple of the alignment 32"},
      {"no data at all", raw().head(1, 0).tensor("t", {1}, kF32, 0), bad, "t", "pass the end"},
      {"tensor twice", raw().head(2, 0).tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).pad().zeros(64), bad, "t",
       "occurs twice"},
      {"directory cut", raw().head(2, 0).tensor("a long enough name", {1}, kF32, 0), bad, "", "the file ends inside"},
      {"one shard", raw().head(0, 1).key<uint16_t>("split.count", 2, 3), unsupported, "", "one shard of 3"},
      {"too many shards", raw().head(0, 1).key<uint16_t>("split.count", 2, 1025), bad, "split.count", "1025"},
  };
}

TEST(GgufHostile, EveryDefectIsNamed) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto file = GgufFile::parse(c.file.bytes());
    EXPECT_FALSE(file.ok());
    if (file.ok()) continue;
    EXPECT_EQ(file.error().code, c.code);
    EXPECT_EQ(file.error().param, c.param);
    EXPECT_NE(file.error().message.find(c.message), std::string::npos) << file.error().message;
  }
}

// The same files through open(): same verdict, and the path in the message.
TEST(GgufHostile, TheSameFromFiles) {
  const TempFolder folder;
  for (const Case& c : cases()) {
    if (std::string_view(c.name) == "one shard") continue;
    SCOPED_TRACE(c.name);
    const std::string path = folder.write("model.gguf", c.file.bytes());
    for (const bool use_mmap : {true, false}) {
      GgufOptions options;
      options.use_mmap = use_mmap;
      const auto file = GgufFile::open(path, options);
      EXPECT_FALSE(file.ok());
      if (file.ok()) continue;
      EXPECT_EQ(file.error().code, c.code);
      EXPECT_EQ(file.error().param, *c.param ? c.param : path);
      EXPECT_NE(file.error().message.find(c.message), std::string::npos) << file.error().message;
      EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
    }
  }
}

TEST(GgufHostile, LimitsAreTheCallers) {
  GgufLimits limits;
  limits.max_array_bytes = 256;
  // In memory a u8 takes eight bytes and a string its object.
  EXPECT_TRUE(GgufFile::parse(one_array(0, 32).zeros(32).bytes(), limits).ok());
  EXPECT_EQ(GgufFile::parse(one_array(0, 33).zeros(33).bytes(), limits).error().param, "list");
  EXPECT_TRUE(GgufFile::parse(one_array(kString, 4).zeros(32).bytes(), limits).ok());
  const RawGguf long_text = one_array(kString, 1).text(std::string(250, 'x'));
  EXPECT_EQ(GgufFile::parse(long_text.bytes(), limits).error().param, "list");
  EXPECT_TRUE(GgufFile::parse(long_text.bytes()).ok());
  limits.max_string_bytes = 10;
  EXPECT_TRUE(GgufFile::parse(one_key("k").put(kString).text("0123456789").bytes(), limits).ok());
  EXPECT_EQ(GgufFile::parse(one_key("k").put(kString).text("0123456789a").bytes(), limits).error().param, "k");
  limits.max_keys = 0;
  EXPECT_FALSE(GgufFile::parse(one_key("k").put(kU32).put<uint32_t>(1).bytes(), limits).ok());
  limits.max_tensors = 0;
  EXPECT_FALSE(GgufFile::parse(one_tensor("t", {1}, kF32, 0).bytes(), limits).ok());
}

}  // namespace
}  // namespace hocket
