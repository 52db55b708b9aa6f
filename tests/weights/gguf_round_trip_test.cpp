#include <gguf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "weights/gguf.h"
#include "weights/gguf_format.h"
#include "weights/gguf_writer.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

Bytes random_bytes(std::size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes out(n);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

std::vector<ggml_type> all_types() {
  std::vector<ggml_type> types;
  for (uint32_t id = 0; id < GGML_TYPE_COUNT; ++id)
    if (is_tensor_type(id)) types.push_back(static_cast<ggml_type>(id));
  return types;
}

TEST(GgufRoundTrip, EveryTensorTypeComesBack) {
  const std::vector<ggml_type> types = all_types();
  EXPECT_EQ(types.size(), 35u);
  GgufWriter writer;
  std::vector<Bytes> wanted;
  for (const ggml_type type : types) {
    const int64_t block = ggml_blck_size(type);
    wanted.push_back(random_bytes(ggml_row_size(type, block * 2) * 15, static_cast<uint32_t>(type)));
    ASSERT_TRUE(writer.add_bytes(ggml_type_name(type), type, {block * 2, 3, 5}, wanted.back()).ok());
  }
  const auto image = writer.image();
  ASSERT_TRUE(image.ok());
  const auto file = GgufFile::parse(*image);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ((*file)->tensors().size(), types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const TensorInfo* tensor = (*file)->find(ggml_type_name(types[i]));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor, &(*file)->tensors()[i]);
    EXPECT_EQ(tensor->type, types[i]);
    EXPECT_EQ(tensor->n_dims, 3);
    EXPECT_EQ(tensor->ne, (std::array<int64_t, 4>{ggml_blck_size(types[i]) * 2, 3, 5, 1}));
    EXPECT_EQ(tensor->offset_bytes % 32, 0u);
    EXPECT_EQ(tensor->n_bytes, wanted[i].size());
    const auto data = (*file)->data(*tensor);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), wanted[i].begin(), wanted[i].end()));
  }
  EXPECT_EQ((*file)->find("none"), nullptr);
  EXPECT_EQ((*file)->find(""), nullptr);
}

TEST(GgufRoundTrip, MetadataComeBack) {
  Metadata m;
  m.set("zero", int64_t{0});
  m.set("u32", int64_t{4294967295});
  m.set("i32", int64_t{-2147483648});
  m.set("i64", int64_t{-2147483649});
  m.set("wide", int64_t{4294967296});
  m.set("largest", std::numeric_limits<int64_t>::max());
  m.set("u64", std::numeric_limits<uint64_t>::max());
  m.set("float", 0.25);
  m.set("double", 1e300);
  m.set("infinite", std::numeric_limits<double>::infinity());
  m.set("yes", true);
  m.set("no", false);
  m.set("text", std::string("a\0b", 3));
  m.set("empty", std::string());
  m.set("ints", MetadataArray{std::vector<int64_t>{1, -2, 3}});
  m.set("unsigned", MetadataArray{std::vector<int64_t>{1, 4294967295}});
  m.set("longs", MetadataArray{std::vector<int64_t>{-1, int64_t{1} << 40}});
  m.set("no_ints", MetadataArray{std::vector<int64_t>{}});
  m.set("floats", MetadataArray{std::vector<double>{0.5, -0.25}});
  m.set("doubles", MetadataArray{std::vector<double>{0.1, -1e300}});
  m.set("texts", MetadataArray{std::vector<std::string>{"", "ä", std::string(70'000, 'x')}});
  m.set("bools", MetadataArray{std::vector<bool>{true, false, true}});
  m.set("many", MetadataArray{std::vector<int64_t>(100'000, 77)});
  const auto image = GgufWriter(m).image();
  ASSERT_TRUE(image.ok());
  const auto file = GgufFile::parse(*image);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto& found = (*file)->metadata().entries();
  ASSERT_EQ(found.size(), m.entries().size());
  for (const auto& [key, value] : m.entries()) {
    const MetadataValue* other = (*file)->metadata().find(key);
    ASSERT_NE(other, nullptr) << key;
    ASSERT_EQ(other->index(), value.index()) << key;
    if (const auto* array = std::get_if<MetadataArray>(&value)) {
      EXPECT_EQ(std::get<MetadataArray>(*other).items, array->items) << key;
    } else {
      std::visit(
          [&, k = key](const auto& v) {
            using Value = std::decay_t<decltype(v)>;
            if constexpr (!std::is_same_v<Value, MetadataArray>) {
              EXPECT_EQ(std::get<Value>(*other), v) << k;
            }
          },
          value);
    }
  }
}

// Other programs read our files with ggml's reader, which wants these types.
TEST(GgufRoundTrip, GgmlReadsWhatWeWrite) {
  Metadata m;
  m.set("llama.block_count", int64_t{28});
  m.set("negative", int64_t{-1});
  m.set("epsilon", 1e-6);
  m.set("flag", true);
  m.set("general.architecture", std::string("llama"));
  m.set("tokenizer.ggml.token_type", MetadataArray{std::vector<int64_t>{1, 3}});
  m.set("tokenizer.ggml.tokens", MetadataArray{std::vector<std::string>{"a", "b"}});
  GgufWriter writer(m);
  ASSERT_TRUE(writer.add_bytes("first", GGML_TYPE_Q4_0, {64, 3}, Bytes(108)).ok());
  ASSERT_TRUE(writer.add_bytes("second", GGML_TYPE_F32, {5}, random_bytes(20, 4)).ok());
  const TempFolder folder;
  const std::string path = folder.file("m.gguf");
  ASSERT_TRUE(writer.write(path).ok());
  const std::unique_ptr<gguf_context, decltype(&gguf_free)> other(gguf_init_from_file(path.c_str(), {true, nullptr}),
                                                                  gguf_free);
  ASSERT_NE(other, nullptr);
  const auto type_of = [&other](const char* key) {
    return gguf_get_kv_type(other.get(), gguf_find_key(other.get(), key));
  };
  EXPECT_EQ(type_of("llama.block_count"), GGUF_TYPE_UINT32);
  EXPECT_EQ(type_of("negative"), GGUF_TYPE_INT32);
  EXPECT_EQ(type_of("epsilon"), GGUF_TYPE_FLOAT32);
  EXPECT_EQ(type_of("flag"), GGUF_TYPE_BOOL);
  EXPECT_EQ(type_of("general.architecture"), GGUF_TYPE_STRING);
  EXPECT_EQ(gguf_get_val_u32(other.get(), gguf_find_key(other.get(), "llama.block_count")), 28u);
  EXPECT_EQ(gguf_get_arr_type(other.get(), gguf_find_key(other.get(), "tokenizer.ggml.token_type")), GGUF_TYPE_INT32);
  EXPECT_EQ(gguf_get_arr_n(other.get(), gguf_find_key(other.get(), "tokenizer.ggml.tokens")), 2u);
  const auto ours = GgufFile::open(path);
  ASSERT_TRUE(ours.ok());
  for (const char* name : {"first", "second"}) {
    const int64_t id = gguf_find_tensor(other.get(), name);
    ASSERT_GE(id, 0);
    const TensorInfo& tensor = *(*ours)->find(name);
    EXPECT_EQ(gguf_get_tensor_type(other.get(), id), tensor.type);
    EXPECT_EQ(gguf_get_tensor_size(other.get(), id), tensor.n_bytes);
    EXPECT_EQ(gguf_get_data_offset(other.get()) + gguf_get_tensor_offset(other.get(), id), tensor.offset_bytes);
  }
}

TEST(GgufRoundTrip, EveryScalarAndArrayTypeIsRead) {
  RawGguf raw;
  raw.head(0, 24)
      .key<uint8_t>("u8", 0, 200)
      .key<int8_t>("i8", 1, -100)
      .key<uint16_t>("u16", 2, 60000)
      .key<int16_t>("i16", 3, -30000)
      .key<uint32_t>("u32", 4, 4000000000u)
      .key<int32_t>("i32", 5, -2000000000)
      .key<float>("f32", 6, 1.5f)
      .key<uint8_t>("bool", 7, 1)
      .text("string")
      .put<uint32_t>(8)
      .text("s")
      .key<uint64_t>("u64", 10, 5)
      .key<int64_t>("i64", 11, -5)
      .key<double>("f64", 12, 2.5);
  const auto array = [&raw](std::string_view name, uint32_t type, auto a, auto b) {
    raw.text(name).put<uint32_t>(9).put<uint32_t>(type).template put<uint64_t>(2).put(a).put(b);
  };
  array("au8", 0, uint8_t{1}, uint8_t{255});
  array("ai8", 1, int8_t{-1}, int8_t{-128});
  array("au16", 2, uint16_t{1}, uint16_t{65535});
  array("ai16", 3, int16_t{1}, int16_t{-32768});
  array("au32", 4, uint32_t{1}, uint32_t{4294967295});
  array("ai32", 5, int32_t{1}, int32_t{-7});
  array("af32", 6, 1.5f, -0.5f);
  array("abool", 7, uint8_t{1}, uint8_t{0});
  raw.text("astring").put<uint32_t>(9).put<uint32_t>(8).put<uint64_t>(2).text("x").text("");
  array("au64", 10, uint64_t{1}, uint64_t{9223372036854775807});
  array("ai64", 11, int64_t{1}, int64_t{-1});
  array("af64", 12, 1.5, 1e-300);
  const auto file = GgufFile::parse(raw.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Metadata& m = (*file)->metadata();
  EXPECT_EQ(*m.integer("u8"), 200);
  EXPECT_EQ(*m.integer("i8"), -100);
  EXPECT_EQ(*m.integer("u16"), 60000);
  EXPECT_EQ(*m.integer("i16"), -30000);
  EXPECT_EQ(*m.integer("u32"), 4000000000);
  EXPECT_EQ(*m.integer("i32"), -2000000000);
  EXPECT_EQ(*m.integer("u64"), 5);
  EXPECT_EQ(*m.integer("i64"), -5);
  EXPECT_EQ(*m.number("f32"), 1.5);
  EXPECT_EQ(*m.number("f64"), 2.5);
  EXPECT_EQ(*m.boolean("bool"), true);
  EXPECT_EQ(*m.string("string"), "s");
  EXPECT_EQ(**m.integers("au8"), (std::vector<int64_t>{1, 255}));
  EXPECT_EQ(**m.integers("ai8"), (std::vector<int64_t>{-1, -128}));
  EXPECT_EQ(**m.integers("au16"), (std::vector<int64_t>{1, 65535}));
  EXPECT_EQ(**m.integers("ai16"), (std::vector<int64_t>{1, -32768}));
  EXPECT_EQ(**m.integers("au32"), (std::vector<int64_t>{1, 4294967295}));
  EXPECT_EQ(**m.integers("ai32"), (std::vector<int64_t>{1, -7}));
  EXPECT_EQ(**m.integers("au64"), (std::vector<int64_t>{1, 9223372036854775807}));
  EXPECT_EQ(**m.integers("ai64"), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(**m.numbers("af32"), (std::vector<double>{1.5, -0.5}));
  EXPECT_EQ(**m.numbers("af64"), (std::vector<double>{1.5, 1e-300}));
  EXPECT_EQ(**m.booleans("abool"), (std::vector<bool>{true, false}));
  EXPECT_EQ(**m.strings("astring"), (std::vector<std::string>{"x", ""}));
}

TEST(GgufRoundTrip, Version2AndScalarsAndOverlapAreFine) {
  RawGguf raw;
  raw.head(3, 0, 2)
      .tensor("scalar", {}, GGML_TYPE_F32, 0)
      .tensor("same", {2}, GGML_TYPE_F32, 0)
      .tensor("later", {1, 2}, GGML_TYPE_I8, 32)
      .pad()
      .zeros(34);
  const auto file = GgufFile::parse(raw.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->version(), 2);
  EXPECT_EQ((*file)->find("scalar")->n_dims, 1);
  EXPECT_EQ((*file)->find("scalar")->n_bytes, 4u);
  EXPECT_EQ((*file)->find("same")->offset_bytes, (*file)->find("scalar")->offset_bytes);
  EXPECT_EQ((*file)->file_bytes(), raw.bytes().size());
}

TEST(GgufRoundTrip, AlignmentIsKept) {
  for (const int64_t alignment : {1, 2, 64, 4096, 1 << 20}) {
    Metadata m;
    m.set("general.alignment", alignment);
    GgufWriter writer(m);
    const Bytes a = random_bytes(12, 1), b = random_bytes(20, 2);
    ASSERT_TRUE(writer.add_bytes("a", GGML_TYPE_F32, {3}, a).ok());
    ASSERT_TRUE(writer.add_bytes("b", GGML_TYPE_F32, {5}, b).ok());
    const auto image = writer.image();
    ASSERT_TRUE(image.ok());
    const auto file = GgufFile::parse(*image);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ((*file)->alignment(), static_cast<std::size_t>(alignment));
    const TensorInfo& last = *(*file)->find("b");
    EXPECT_EQ(last.offset_bytes % static_cast<uint64_t>(alignment), 0u);
    const auto data = (*file)->data(last);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), b.begin(), b.end()));
  }
}

TEST(GgufRoundTrip, LongNamesAreKept) {
  GgufWriter writer;
  const std::string longest(256, 'n');
  ASSERT_TRUE(writer.add_bytes(longest, GGML_TYPE_I8, {1}, Bytes(1)).ok());
  const auto image = writer.image();
  ASSERT_TRUE(image.ok());
  const auto file = GgufFile::parse(*image);
  ASSERT_TRUE(file.ok());
  EXPECT_NE((*file)->find(longest), nullptr);
}

TEST(GgufWriterErrors, NameTheTensorOrKey) {
  GgufWriter writer;
  ASSERT_TRUE(writer.add_bytes("twice", GGML_TYPE_F32, {1}, Bytes(4)).ok());
  const auto refused = [&writer](const std::string& name, ggml_type type, const std::vector<int64_t>& shape) {
    const auto added = writer.add_bytes(name, type, shape, {});
    EXPECT_FALSE(added.ok()) << name;
    if (added.ok()) return;
    EXPECT_EQ(added.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(added.error().param, name);
  };
  refused("twice", GGML_TYPE_F32, {1});
  refused("", GGML_TYPE_F32, {1});
  refused(std::string(257, 'n'), GGML_TYPE_F32, {1});
  refused(std::string("a\0b", 3), GGML_TYPE_F32, {1});
  refused("no shape", GGML_TYPE_F32, {});
  refused("five", GGML_TYPE_F32, {1, 1, 1, 1, 1});
  refused("zero", GGML_TYPE_F32, {0});
  refused("negative", GGML_TYPE_F32, {4, -1});
  refused("block", GGML_TYPE_Q4_0, {33});
  refused("huge", GGML_TYPE_F32, {int64_t{1} << 40, int64_t{1} << 40});
  refused("removed", static_cast<ggml_type>(4), {32});
  refused("unknown", GGML_TYPE_COUNT, {32});

  ASSERT_TRUE(writer.add_bytes("short", GGML_TYPE_F32, {2}, Bytes(4)).ok());
  const auto short_image = writer.image();
  ASSERT_FALSE(short_image.ok());
  EXPECT_EQ(short_image.error().param, "short");

  GgufWriter other;
  ASSERT_TRUE(other.add("long", GGML_TYPE_F32, {1}, [] { return Result<Bytes>(Bytes(5)); }).ok());
  EXPECT_EQ(other.image().error().param, "long");
  GgufWriter failing;
  ASSERT_TRUE(failing.add("x", GGML_TYPE_F32, {1}, [] { return Result<Bytes>(Error(ErrorCode::kBusy, "no")); }).ok());
  EXPECT_EQ(failing.image().error().code, ErrorCode::kBusy);

  Metadata m;
  m.set("general.alignment", int64_t{48});
  EXPECT_EQ(GgufWriter(m).image().error().param, "general.alignment");
  Metadata unnamed;
  unnamed.set("", int64_t{1});
  EXPECT_EQ(GgufWriter(unnamed).image().error().code, ErrorCode::kInvalid);
}

TEST(GgufWriterErrors, LeaveNoPartialFile) {
  const TempFolder folder;
  GgufWriter writer;
  ASSERT_TRUE(writer.add("x", GGML_TYPE_F32, {1}, [] { return Result<Bytes>(Error(ErrorCode::kBusy, "no")); }).ok());
  EXPECT_FALSE(writer.write(folder.file("x.gguf")).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
  const auto lost = writer.write(folder.file("none/x.gguf"));
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, ErrorCode::kIo);
}

TEST(GgufWriter, StreamsInPieces) {
  GgufWriter writer;
  const Bytes data = random_bytes(4000, 3);
  ASSERT_TRUE(writer
                  .add_stream("x", GGML_TYPE_F32, {1000},
                              [&](const ByteSink& sink) -> Result<void> {
                                for (std::size_t at = 0; at < data.size(); at += 800)
                                  TRY(sink(std::span(data).subspan(at, 800)));
                                return {};
                              })
                  .ok());
  const auto image = writer.image();
  ASSERT_TRUE(image.ok());
  const auto file = GgufFile::parse(*image);
  ASSERT_TRUE(file.ok());
  const auto found = (*file)->data(*(*file)->find("x"));
  EXPECT_TRUE(std::equal(found.begin(), found.end(), data.begin(), data.end()));
}

}  // namespace
}  // namespace hocket
