// A good file, cut at every byte of its header and with every bit of its header flipped: each variant is a clean error
// or a file whose tensors can all be read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "weights/gguf.h"
#include "weights/gguf_writer.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

// One key of every kind and tensors of several types.
Bytes example_image() {
  Metadata m;
  m.set("general.architecture", std::string("llama"));
  m.set("general.alignment", int64_t{32});
  m.set("llama.block_count", int64_t{4});
  m.set("negative", int64_t{-4});
  m.set("wide", int64_t{1} << 40);
  m.set("unsigned", ~uint64_t{0});
  m.set("epsilon", 1e-5);
  m.set("double", 1e200);
  m.set("flag", true);
  m.set("tokens", MetadataArray{std::vector<std::string>{"<s>", "a", "", "bc"}});
  m.set("scores", MetadataArray{std::vector<double>{0.5, -1.0, 2.0}});
  m.set("types", MetadataArray{std::vector<int64_t>{1, 2, 3, 3}});
  m.set("pattern", MetadataArray{std::vector<bool>{true, false, true}});
  GgufWriter writer(m);
  EXPECT_TRUE(writer.add_bytes("token_embd.weight", GGML_TYPE_F16, {8, 4}, Bytes(64, std::byte{1})).ok());
  EXPECT_TRUE(writer.add_bytes("blk.0.attn_q.weight", GGML_TYPE_Q4_0, {32, 2, 3}, Bytes(108, std::byte{2})).ok());
  EXPECT_TRUE(writer.add_bytes("output_norm.weight", GGML_TYPE_F32, {3}, Bytes(12, std::byte{3})).ok());
  const auto image = writer.image();
  EXPECT_TRUE(image.ok());
  return *image;
}

// The header ends at the first tensor's data.
std::size_t header_bytes(const Bytes& image) {
  const auto file = GgufFile::parse(image);
  EXPECT_TRUE(file.ok()) << file.error().message;
  std::size_t first = image.size();
  for (const TensorInfo& t : (*file)->tensors()) first = std::min<std::size_t>(first, t.offset_bytes);
  return first;
}

// What holds for every input. True when it was taken for a good file.
bool check_variant(std::span<const std::byte> image) {
  const auto file = GgufFile::parse(image);
  if (!file.ok()) {
    EXPECT_TRUE(file.error().code == ErrorCode::kBadModel || file.error().code == ErrorCode::kUnsupported)
        << error_code_name(file.error().code) << ": " << file.error().message;
    EXPECT_FALSE(file.error().message.empty());
    return false;
  }
  for (const TensorInfo& tensor : (*file)->tensors()) {
    EXPECT_EQ(tensor.n_bytes, ggml_row_size(tensor.type, tensor.ne[0]) * static_cast<uint64_t>(tensor.ne[1]) *
                                  static_cast<uint64_t>(tensor.ne[2]) * static_cast<uint64_t>(tensor.ne[3]));
    EXPECT_EQ((*file)->find(tensor.name), &tensor);
    const auto data = (*file)->data(tensor);
    EXPECT_EQ(data.size(), tensor.n_bytes);
    Bytes copy(tensor.n_bytes);
    EXPECT_TRUE((*file)->read(tensor, 0, copy).ok());
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), data.begin(), data.end()));
  }
  return true;
}

TEST(GgufDamage, CutAtEveryByte) {
  const Bytes image = example_image();
  ASSERT_TRUE(check_variant(image));
  const std::size_t last_needed = image.size() - 32 + 12;  // the last tensor's padding may be missing
  for (std::size_t n = 0; n < image.size(); ++n) {
    SCOPED_TRACE(n);
    const Bytes cut(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(n));  // its own block: ASan sees its end
    EXPECT_EQ(check_variant(cut), n >= last_needed);
  }
}

TEST(GgufDamage, EveryBitOfTheHeaderFlipped) {
  const Bytes image = example_image();
  const std::size_t n_header = header_bytes(image);
  ASSERT_GT(n_header, 500u);
  std::size_t n_refused = 0, n_taken = 0;
  for (std::size_t at = 0; at < n_header; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " bit " << bit);
      Bytes damaged = image;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      ++(check_variant(damaged) ? n_taken : n_refused);
    }
  }
  EXPECT_GT(n_refused, n_header);  // lengths, counts, types, offsets
  EXPECT_GT(n_taken, n_header);    // characters of names, values
}

TEST(GgufDamage, EveryByteOfTheHeaderReplaced) {
  const Bytes image = example_image();
  const std::size_t n_header = header_bytes(image);
  for (std::size_t at = 0; at < n_header; ++at) {
    for (const int value : {0x00, 0x7F, 0x80, 0xFF}) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " value " << value);
      Bytes damaged = image;
      damaged[at] = static_cast<std::byte>(value);
      check_variant(damaged);
    }
  }
}

TEST(GgufDamage, EveryEightBytesOfTheHeaderReplaced) {
  const Bytes image = example_image();
  const std::size_t n_header = header_bytes(image);
  for (std::size_t at = 0; at + 8 <= n_header; ++at) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 61, uint64_t{1} << 63, ~uint64_t{0}}) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " value " << value);
      Bytes damaged = image;
      std::memcpy(damaged.data() + at, &value, sizeof value);
      check_variant(damaged);
    }
  }
}

}  // namespace
}  // namespace hocket
