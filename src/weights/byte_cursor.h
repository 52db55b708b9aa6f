// weights/byte_cursor.h: reads little-endian values from a file or an image, one after another, never past the end.
//
// Owns     a buffer of at most 64 KiB; ByteCursor borrows the source.
// Threads  a cursor by one user; sources from any thread.
// Errors   kBadModel naming what was read and the byte offset when the source ends; kIo from the source.
// Cost     one source read per 64 KiB; larger reads go straight into the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace hocket {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; the range lies inside size().
  virtual Result<void> read(uint64_t offset, std::span<std::byte> out) const = 0;
};

class ImageSource : public ByteSource {
 public:
  explicit ImageSource(std::span<const std::byte> image) : image_(image) {}
  uint64_t size() const override { return image_.size(); }
  Result<void> read(uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::span<const std::byte> image_;
};

class ByteCursor {
 public:
  explicit ByteCursor(const ByteSource& source) : source_(source), size_(source.size()) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }

  // The error of a read of n bytes that would pass the end; `what` is what the bytes are ("the tensor count").
  Result<void> require(uint64_t n, std::string_view what) const;
  Result<void> read(std::span<std::byte> out, std::string_view what);

  template <class T>
  Result<T> value(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T out{};
    TRY(read(std::as_writable_bytes(std::span(&out, 1)), what));
    return out;
  }
  // A u64 length and that many bytes, at most max_bytes. Nothing is allocated for bytes that are not there.
  Result<std::string> string(uint64_t max_bytes, std::string_view what);

 private:
  const ByteSource& source_;
  uint64_t size_;
  uint64_t position_ = 0;
  uint64_t buffer_start_ = 0;
  std::vector<std::byte> buffer_;
};

// A name from a file as it may appear in a message: valid UTF-8 without control characters, at most 96 bytes.
std::string printable_name(std::string_view name);

}  // namespace hocket
