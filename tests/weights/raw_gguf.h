// tests/weights/raw_gguf.h: builds GGUF bytes by hand, right or wrong in every place; and a folder that cleans itself
// up.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hocket {

using Bytes = std::vector<std::byte>;

class RawGguf {
 public:
  template <class T>
  RawGguf& put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto raw = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    return *this;
  }
  RawGguf& raw(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  RawGguf& text(std::string_view t) { return put<uint64_t>(t.size()).raw(t); }
  RawGguf& head(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    return raw("GGUF").put<uint32_t>(version).put<uint64_t>(n_tensors).put<uint64_t>(n_keys);
  }
  template <class T>
  RawGguf& key(std::string_view name, uint32_t type, T value) {
    return text(name).put<uint32_t>(type).put(value);
  }
  RawGguf& tensor(std::string_view name, std::vector<int64_t> ne, uint32_t type, uint64_t offset) {
    text(name).put<uint32_t>(static_cast<uint32_t>(ne.size()));
    for (const int64_t n : ne) put(n);
    return put<uint32_t>(type).put(offset);
  }
  RawGguf& pad(std::size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  RawGguf& zeros(std::size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hocket-test-XXXXXX").string();
    if (const char* made = ::mkdtemp(name.data())) path_ = made;
    EXPECT_FALSE(path_.empty());
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream out(file(name), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

inline Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto raw = std::as_bytes(std::span(text));
  return Bytes(raw.begin(), raw.end());
}

}  // namespace hocket
