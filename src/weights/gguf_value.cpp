#include "weights/gguf_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "weights/gguf_format.h"

namespace hocket {
namespace {

class ValueReader {
 public:
  ValueReader(ByteCursor& cursor, const GgufLimits& limits, std::string_view key)
      : cursor_(cursor), limits_(limits), key_(key), what_(fmt::format("the value of metadata key {}", key)) {}

  Result<MetadataValue> read();

 private:
  Error bad(std::string_view what) const {
    return Error(ErrorCode::kBadModel, fmt::format("metadata key {}: {}", key_, what));
  }

  template <class Stored>
  Result<MetadataValue> scalar();
  Result<MetadataValue> boolean();
  Result<MetadataValue> array();

  // Checks that n elements are in the file and may be held: item_bytes in the file, held_bytes in memory.
  Result<void> check_array(uint64_t n, uint64_t item_bytes, uint64_t held_bytes) const;
  template <class Stored, class Item>
  Result<MetadataValue> items(uint64_t n);
  Result<MetadataValue> strings(uint64_t n);

  ByteCursor& cursor_;
  const GgufLimits& limits_;
  std::string_view key_;
  std::string what_;
};

Result<MetadataValue> ValueReader::read() {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(const auto type, cursor_.value<uint32_t>(what_));
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kU8:
      return scalar<uint8_t>();
    case GgufValueType::kI8:
      return scalar<int8_t>();
    case GgufValueType::kU16:
      return scalar<uint16_t>();
    case GgufValueType::kI16:
      return scalar<int16_t>();
    case GgufValueType::kU32:
      return scalar<uint32_t>();
    case GgufValueType::kI32:
      return scalar<int32_t>();
    case GgufValueType::kU64:
      return scalar<uint64_t>();
    case GgufValueType::kI64:
      return scalar<int64_t>();
    case GgufValueType::kF32:
      return scalar<float>();
    case GgufValueType::kF64:
      return scalar<double>();
    case GgufValueType::kBool:
      return boolean();
    case GgufValueType::kArray:
      return array();
    case GgufValueType::kString: {
      TRY_ASSIGN(std::string text, cursor_.string(limits_.max_string_bytes, what_));
      return MetadataValue(std::move(text));
    }
  }
  return bad(fmt::format("unknown value type {} at byte {}", type, at));
}

template <class Stored>
Result<MetadataValue> ValueReader::scalar() {
  TRY_ASSIGN(const auto v, cursor_.value<Stored>(what_));
  if constexpr (std::is_floating_point_v<Stored>) {
    return MetadataValue(static_cast<double>(v));
  } else if constexpr (std::is_same_v<Stored, uint64_t>) {
    if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return MetadataValue(v);
    return MetadataValue(static_cast<int64_t>(v));
  } else {
    return MetadataValue(static_cast<int64_t>(v));
  }
}

Result<MetadataValue> ValueReader::boolean() {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(const auto v, cursor_.value<uint8_t>(what_));
  if (v > 1) return bad(fmt::format("{} at byte {} is not a boolean", v, at));
  return MetadataValue(v == 1);
}

Result<MetadataValue> ValueReader::array() {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(const auto type, cursor_.value<uint32_t>(what_));
  TRY_ASSIGN(const auto n, cursor_.value<uint64_t>(what_));
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kU8:
      return items<uint8_t, int64_t>(n);
    case GgufValueType::kI8:
      return items<int8_t, int64_t>(n);
    case GgufValueType::kU16:
      return items<uint16_t, int64_t>(n);
    case GgufValueType::kI16:
      return items<int16_t, int64_t>(n);
    case GgufValueType::kU32:
      return items<uint32_t, int64_t>(n);
    case GgufValueType::kI32:
      return items<int32_t, int64_t>(n);
    case GgufValueType::kU64:
      return items<uint64_t, int64_t>(n);
    case GgufValueType::kI64:
      return items<int64_t, int64_t>(n);
    case GgufValueType::kF32:
      return items<float, double>(n);
    case GgufValueType::kF64:
      return items<double, double>(n);
    case GgufValueType::kBool:
      return items<uint8_t, bool>(n);
    case GgufValueType::kString:
      return strings(n);
    case GgufValueType::kArray:
      return bad(fmt::format("array of arrays at byte {}", at));
  }
  return bad(fmt::format("unknown array element type {} at byte {}", type, at));
}

Result<void> ValueReader::check_array(uint64_t n, uint64_t item_bytes, uint64_t held_bytes) const {
  if (n > limits_.max_array_bytes / std::max(item_bytes, held_bytes))
    return bad(fmt::format("an array of {} elements at byte {} needs more than {} bytes", n, cursor_.position(),
                           limits_.max_array_bytes));
  return cursor_.require(n * item_bytes, what_);
}

template <class Stored, class Item>
Result<MetadataValue> ValueReader::items(uint64_t n) {
  TRY(check_array(n, sizeof(Stored), sizeof(Item)));
  std::vector<Item> out;
  out.reserve(static_cast<std::size_t>(n));
  std::array<Stored, 1024> part;
  while (out.size() < n) {
    const std::span<Stored> stored(part.data(),
                                   std::min<std::size_t>(part.size(), static_cast<std::size_t>(n) - out.size()));
    TRY(cursor_.read(std::as_writable_bytes(stored), what_));
    for (const Stored v : stored) {
      if constexpr (std::is_same_v<Item, bool>) {
        if (v > 1) return bad(fmt::format("element {} ({}) is not a boolean", out.size(), v));
        out.push_back(v == 1);
      } else {
        if constexpr (std::is_same_v<Stored, uint64_t>)
          if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            return bad(fmt::format("element {} ({}) passes 2^63", out.size(), v));
        out.push_back(static_cast<Item>(v));
      }
    }
  }
  return MetadataValue(MetadataArray{std::move(out)});
}

Result<MetadataValue> ValueReader::strings(uint64_t n) {
  TRY(check_array(n, sizeof(uint64_t), sizeof(std::string)));
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(n));
  uint64_t held = n * sizeof(std::string);
  while (out.size() < n) {
    TRY_ASSIGN(std::string text, cursor_.string(limits_.max_string_bytes, what_));
    held += text.size();
    if (held > limits_.max_array_bytes)
      return bad(fmt::format("an array of {} strings needs more than {} bytes", n, limits_.max_array_bytes));
    out.push_back(std::move(text));
  }
  return MetadataValue(MetadataArray{std::move(out)});
}

}  // namespace

Result<MetadataValue> read_gguf_value(ByteCursor& cursor, const GgufLimits& limits, std::string_view key) {
  return ValueReader(cursor, limits, key).read();
}

}  // namespace hocket
