// tests/weights/raw_gguf.h: builds GGUF bytes by hand, right or wrong in every place.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/temp_folder.h"

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

inline Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto raw = std::as_bytes(std::span(text));
  return Bytes(raw.begin(), raw.end());
}

}  // namespace hocket
