#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "weights/gguf.h"
#include "weights/gguf_writer.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

Bytes values(int i) {
  return Bytes(64, static_cast<std::byte>(i + 1));
}

GgufWriter writer_of(int n_tensors) {
  Metadata m;
  m.set("general.architecture", std::string("llama"));
  m.set("general.alignment", int64_t{64});
  GgufWriter writer(m);
  for (int i = 0; i < n_tensors; ++i)
    EXPECT_TRUE(writer.add_bytes(fmt::format("t{}", i), GGML_TYPE_I8, {64}, values(i)).ok());
  return writer;
}

std::vector<std::string> write_set(const TempFolder& folder, int n_tensors, std::size_t n_shards) {
  auto paths = writer_of(n_tensors).write_shards(folder.file("m"), n_shards);
  EXPECT_TRUE(paths.ok()) << paths.error().message;
  return *paths;
}

TEST(GgufShards, AnyShardOpensTheSet) {
  const TempFolder folder;
  const auto paths = write_set(folder, 7, 3);
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_EQ(paths[1], folder.file("m-00002-of-00003.gguf"));
  uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += std::filesystem::file_size(path);
  for (const std::string& path : paths) {
    for (const bool use_mmap : {true, false}) {
      GgufOptions options;
      options.use_mmap = use_mmap;
      const auto file = GgufFile::open(path, options);
      ASSERT_TRUE(file.ok()) << file.error().message;
      EXPECT_EQ((*file)->n_shards(), 3u);
      EXPECT_EQ((*file)->file_bytes(), bytes);
      EXPECT_EQ((*file)->alignment(), 64u);
      EXPECT_EQ(*(*file)->metadata().string("general.architecture"), "llama");
      ASSERT_EQ((*file)->tensors().size(), 7u);
      std::set<std::size_t> used;
      for (int i = 0; i < 7; ++i) {
        const TensorInfo* tensor = (*file)->find(fmt::format("t{}", i));
        ASSERT_NE(tensor, nullptr);
        used.insert(tensor->shard);
        Bytes out(64);
        ASSERT_TRUE((*file)->read(*tensor, 0, out).ok());
        EXPECT_EQ(out, values(i));
        const auto data = (*file)->data(*tensor);
        EXPECT_EQ(Bytes(data.begin(), data.end()), use_mmap ? values(i) : Bytes());
      }
      EXPECT_EQ(used, (std::set<std::size_t>{0, 1, 2}));
    }
  }
}

TEST(GgufShards, TheFirstMayBeWithoutTensors) {
  const TempFolder folder;
  const auto paths = write_set(folder, 1, 2);
  const auto file = GgufFile::open(paths[0]);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->tensors().at(0).shard, 1u);
}

TEST(GgufShards, OneShardIsAWholeFileOfAnyName) {
  const TempFolder folder;
  const auto paths = write_set(folder, 2, 1);
  std::filesystem::rename(paths[0], folder.file("other.gguf"));
  EXPECT_TRUE(GgufFile::open(folder.file("other.gguf")).ok());
  // The name alone does not make a shard.
  ASSERT_TRUE(writer_of(2).write(folder.file("x-00002-of-00003.gguf")).ok());
  const auto file = GgufFile::open(folder.file("x-00002-of-00003.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->n_shards(), 1u);
}

// A shard written by hand: keys as given, one tensor.
struct HandShard {
  int64_t no, count, n_tensors;
  std::string tensor;
};
void write_hand(const std::string& path, const HandShard& shard) {
  Metadata m;
  m.set("split.no", shard.no);
  m.set("split.count", shard.count);
  if (shard.n_tensors >= 0) m.set("split.tensors.count", shard.n_tensors);
  GgufWriter writer(m);
  EXPECT_TRUE(writer.add_bytes(shard.tensor, GGML_TYPE_I8, {1}, Bytes(1)).ok());
  EXPECT_TRUE(writer.write(path).ok());
}

struct Case {
  const char* name;
  std::map<const char*, HandShard> files;
  const char* open;
  ErrorCode code;
  const char* param;  // "" when it is a path
  const char* message;
};

TEST(GgufShards, EveryDefectOfASetIsNamed) {
  constexpr auto bad = ErrorCode::kBadModel;
  const char* const one = "m-00001-of-00002.gguf";
  const char* const two = "m-00002-of-00002.gguf";
  const std::vector<Case> cases{
      {"good", {{one, {0, 2, 2, "a"}}, {two, {1, 2, 2, "b"}}}, one, ErrorCode::kInternal, "", ""},
      {"second missing", {{one, {0, 2, 2, "a"}}}, one, ErrorCode::kNotFound, "", "m-00002-of-00002.gguf: no such file"},
      {"first missing", {{two, {1, 2, 2, "b"}}}, two, ErrorCode::kNotFound, "", "m-00001-of-00002.gguf: no such file"},
      {"first says it is second",
       {{one, {1, 2, 2, "a"}}},
       one,
       bad,
       "split.no",
       "has to end with -00002-of-00002.gguf"},
      {"second says it is first",
       {{one, {0, 2, 2, "a"}}, {two, {0, 2, 2, "b"}}},
       one,
       bad,
       "split.no",
       "0 here, expected 1"},
      {"opened second says it is first",
       {{one, {0, 2, 2, "a"}}, {two, {0, 2, 2, "b"}}},
       two,
       bad,
       "split.no",
       "has to end with"},
      {"first behind second is no first",
       {{one, {1, 2, 2, "a"}}, {two, {1, 2, 2, "b"}}},
       two,
       bad,
       "split.no",
       "1 in the first"},
      {"other count in second",
       {{one, {0, 2, 2, "a"}}, {two, {1, 3, 2, "b"}}},
       one,
       bad,
       "split.count",
       "3 here, 2 in the first"},
      {"other count in first", {{one, {0, 3, 2, "a"}}, {two, {1, 2, 2, "b"}}}, two, bad, "split.count", "3 here, 2 in"},
      {"second is whole", {{one, {0, 2, 2, "a"}}, {two, {0, 1, 1, "b"}}}, one, bad, "split.count", "1 here"},
      {"number past the count", {{one, {2, 2, 2, "a"}}}, one, bad, "split.no", "is not in 0 … 1"},
      {"negative number", {{one, {-1, 2, 2, "a"}}}, one, bad, "split.no", "is not in 0 … 1"},
      {"negative count", {{one, {0, -2, 2, "a"}}}, one, bad, "split.count", "is not in 0"},
      {"count past the limit", {{one, {0, 5000, 2, "a"}}}, one, bad, "split.count", "5000"},
      {"wrong tensor count",
       {{one, {0, 2, 3, "a"}}, {two, {1, 2, 3, "b"}}},
       one,
       bad,
       "split.tensors.count",
       "3 announced, 2 found"},
      {"no tensor count", {{one, {0, 2, -1, "a"}}, {two, {1, 2, 2, "b"}}}, one, bad, "split.tensors.count", "missing"},
      {"same tensor twice", {{one, {0, 2, 2, "a"}}, {two, {1, 2, 2, "a"}}}, one, bad, "a", "tensor a occurs twice"},
      {"shard with another name",
       {{"other.gguf", {0, 2, 2, "a"}}},
       "other.gguf",
       bad,
       "split.no",
       "has to end with -00001-of-00002"},
      {"name without a prefix",
       {{"-00001-of-00002.gguf", {0, 2, 2, "a"}}, {"-00002-of-00002.gguf", {1, 2, 2, "b"}}},
       "-00001-of-00002.gguf",
       ErrorCode::kInternal,
       "",
       ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TempFolder folder;
    for (const auto& [name, shard] : c.files) write_hand(folder.file(name), shard);
    const auto file = GgufFile::open(folder.file(c.open));
    EXPECT_EQ(file.ok(), c.code == ErrorCode::kInternal);
    if (file.ok()) continue;
    EXPECT_EQ(file.error().code, c.code);
    if (*c.param) {
      EXPECT_EQ(file.error().param, c.param);
    }
    EXPECT_NE(file.error().message.find(c.message), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find(folder.file("")), std::string::npos) << file.error().message;
  }
}

TEST(GgufShards, ADamagedShardIsNamed) {
  const TempFolder folder;
  const auto paths = write_set(folder, 4, 2);
  std::filesystem::resize_file(paths[1], 100);
  const auto file = GgufFile::open(paths[0]);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kBadModel);
  EXPECT_NE(file.error().message.find(paths[1]), std::string::npos) << file.error().message;
}

TEST(GgufShards, TheTensorLimitCoversAllShards) {
  const TempFolder folder;
  const auto paths = write_set(folder, 6, 2);
  GgufOptions options;
  options.limits.max_tensors = 5;
  EXPECT_EQ(GgufFile::open(paths[0], options).error().code, ErrorCode::kBadModel);
  options.limits.max_tensors = 6;
  EXPECT_TRUE(GgufFile::open(paths[0], options).ok());
}

TEST(GgufShards, WriterRefusesWrongNumbers) {
  const TempFolder folder;
  EXPECT_EQ(writer_of(1).write_shards(folder.file("m"), 0).error().param, "n_shards");
  EXPECT_EQ(writer_of(1).write_shards(folder.file("m"), 1025).error().param, "n_shards");
}

}  // namespace
}  // namespace hocket
