#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "weights/gguf.h"
#include "weights/gguf_writer.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

Bytes pattern(std::size_t n, int start) {
  Bytes out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(static_cast<int>(i) + start);
  return out;
}

GgufWriter two_tensors() {
  Metadata m;
  m.set("general.architecture", std::string("llama"));
  GgufWriter writer(m);
  EXPECT_TRUE(writer.add_bytes("a", GGML_TYPE_F32, {4, 3}, pattern(48, 1)).ok());
  EXPECT_TRUE(writer.add_bytes("b", GGML_TYPE_F16, {50'000}, pattern(100'000, 9)).ok());
  return writer;
}

void expect_two_tensors(const GgufFile& file) {
  EXPECT_EQ(*file.metadata().string("general.architecture"), "llama");
  for (const auto& [name, wanted] : {std::pair{"a", pattern(48, 1)}, std::pair{"b", pattern(100'000, 9)}}) {
    const TensorInfo* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr);
    Bytes all(tensor->n_bytes);
    ASSERT_TRUE(file.read(*tensor, 0, all).ok());
    EXPECT_EQ(all, wanted);
    Bytes part(7);
    ASSERT_TRUE(file.read(*tensor, 11, part).ok());
    EXPECT_EQ(part, Bytes(wanted.begin() + 11, wanted.begin() + 18));
    EXPECT_TRUE(file.read(*tensor, tensor->n_bytes, std::span<std::byte>()).ok());
    EXPECT_EQ(file.read(*tensor, tensor->n_bytes - 6, part).error().code, ErrorCode::kInternal);
    EXPECT_EQ(file.read(*tensor, ~uint64_t{0}, part).error().code, ErrorCode::kInternal);
    file.drop_pages(*tensor);
    const auto data = file.data(*tensor);
    EXPECT_TRUE(data.empty() || std::equal(data.begin(), data.end(), wanted.begin(), wanted.end()));
  }
}

TEST(GgufFileOpen, MappedReadAndLocked) {
  const TempFolder folder;
  const std::string path = folder.file("model.gguf");
  ASSERT_TRUE(two_tensors().write(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  for (const bool use_mmap : {true, false}) {
    for (const bool use_mlock : {true, false}) {
      GgufOptions options;
      options.use_mmap = use_mmap;
      options.use_mlock = use_mlock;
      const auto file = GgufFile::open(path, options);
      ASSERT_TRUE(file.ok()) << file.error().message;
      EXPECT_EQ((*file)->n_shards(), 1u);
      EXPECT_EQ((*file)->file_bytes(), std::filesystem::file_size(path));
      EXPECT_EQ((*file)->data(*(*file)->find("a")).empty(), !use_mmap);
      expect_two_tensors(**file);
    }
  }
}

TEST(GgufFileOpen, ReadsFromManyThreads) {
  const TempFolder folder;
  const std::string path = folder.file("model.gguf");
  ASSERT_TRUE(two_tensors().write(path).ok());
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_two_tensors(**file); });
  for (std::thread& thread : threads) thread.join();
}

TEST(GgufFileOpen, OtherThanFilesAreCleanErrors) {
  const TempFolder folder;
  const auto code_of = [](const std::string& path) {
    const auto file = GgufFile::open(path);
    EXPECT_FALSE(file.ok()) << path;
    if (file.ok()) return ErrorCode::kInternal;
    EXPECT_EQ(file.error().param, path);
    return file.error().code;
  };
  EXPECT_EQ(code_of(folder.file("none.gguf")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(""), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(std::string("a\0b", 3)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(folder.file("")), ErrorCode::kIo);
  const std::string empty = folder.write("empty.gguf", {});
  EXPECT_EQ(code_of(empty), ErrorCode::kBadModel);
  EXPECT_EQ(code_of(empty + "/below"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kIo);
  const std::string fifo = folder.file("fifo.gguf");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(code_of(fifo), ErrorCode::kIo);
  EXPECT_EQ(code_of(folder.file(std::string(5000, 'n'))), ErrorCode::kIo);
}

TEST(GgufFileOpen, AShrunkenFileIsAnErrorOfRead) {
  const TempFolder folder;
  const std::string path = folder.file("model.gguf");
  ASSERT_TRUE(two_tensors().write(path).ok());
  for (const bool use_mmap : {true, false}) {
    GgufOptions options;
    options.use_mmap = use_mmap;
    ASSERT_TRUE(two_tensors().write(path).ok());
    const auto file = GgufFile::open(path, options);
    ASSERT_TRUE(file.ok());
    std::filesystem::resize_file(path, 1000);
    Bytes out(100'000);
    const auto read = (*file)->read(*(*file)->find("b"), 0, out);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::kIo);
    EXPECT_NE(read.error().message.find("ends at byte 1000"), std::string::npos) << read.error().message;
  }
}

TEST(GgufFileOpen, ReplacingByRenameKeepsTheOpenFile) {
  const TempFolder folder;
  const std::string path = folder.file("model.gguf");
  ASSERT_TRUE(two_tensors().write(path).ok());
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok());
  GgufWriter other;
  ASSERT_TRUE(other.add_bytes("c", GGML_TYPE_I8, {1}, Bytes(1)).ok());
  ASSERT_TRUE(other.write(path).ok());
  expect_two_tensors(**file);
  EXPECT_NE((*GgufFile::open(path))->find("c"), nullptr);
}

}  // namespace
}  // namespace hocket
