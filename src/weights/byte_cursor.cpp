#include "weights/byte_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/utf8.h"

namespace hocket {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are read as they lie");

constexpr std::size_t kBufferBytes = 64 << 10;

}  // namespace

Result<void> ImageSource::read(uint64_t offset, std::span<std::byte> out) const {
  CHECK(offset <= image_.size() && out.size() <= image_.size() - offset);
  if (!out.empty()) std::memcpy(out.data(), image_.data() + offset, out.size());
  return {};
}

Result<void> ByteCursor::require(uint64_t n, std::string_view what) const {
  if (n <= remaining()) return {};
  return Error(ErrorCode::kBadModel, fmt::format("the file ends inside {}: {} bytes needed at byte {}, {} left", what,
                                                 n, position_, remaining()));
}

Result<void> ByteCursor::read(std::span<std::byte> out, std::string_view what) {
  TRY(require(out.size(), what));
  if (out.size() >= kBufferBytes) {
    TRY(source_.read(position_, out));
    position_ += out.size();
    return {};
  }
  const bool buffered = position_ >= buffer_start_ && position_ + out.size() <= buffer_start_ + buffer_.size();
  if (!buffered) {
    buffer_.resize(static_cast<std::size_t>(std::min<uint64_t>(kBufferBytes, remaining())));
    buffer_start_ = position_;
    if (auto filled = source_.read(position_, buffer_); !filled) {
      buffer_.clear();
      return std::move(filled).error();
    }
  }
  if (!out.empty()) std::memcpy(out.data(), buffer_.data() + (position_ - buffer_start_), out.size());
  position_ += out.size();
  return {};
}

Result<std::string> ByteCursor::string(uint64_t max_bytes, std::string_view what) {
  const uint64_t start = position_;
  TRY_ASSIGN(const auto n, value<uint64_t>(what));
  if (n > max_bytes)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} at byte {} has {} bytes; at most {} are allowed", what, start, n, max_bytes));
  TRY(require(n, what));
  std::string out(static_cast<std::size_t>(n), '\0');
  TRY(read(std::as_writable_bytes(std::span(out)), what));
  return out;
}

std::string printable_name(std::string_view name) {
  constexpr std::size_t kMost = 96;
  const bool cut = name.size() > kMost;
  std::string out = repair_utf8(name.substr(0, kMost));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  if (cut) out += "…";
  return out;
}

}  // namespace hocket
