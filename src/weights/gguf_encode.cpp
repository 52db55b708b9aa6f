#include "weights/gguf_encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weights/gguf_format.h"

namespace hocket {
namespace {

class Encoder {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put(GgufValueType type) { put(static_cast<uint32_t>(type)); }
  void put(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    put_raw(text);
  }
  void put_raw(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }
  void put_tensor(const TensorInfo& tensor);
  void put_value(std::string_view key, const MetadataValue& value);
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void put_integer(int64_t value);
  void put_number(double value);
  void put_items(const std::vector<int64_t>& items);
  void put_items(const std::vector<double>& items);
  void put_items(const std::vector<bool>& items);
  void put_items(const std::vector<std::string>& items);
  template <class Stored, class Items>
  void put_array(GgufValueType type, const Items& items) {
    put(type);
    put(static_cast<uint64_t>(items.size()));
    for (const auto& item : items) put(static_cast<Stored>(item));
  }

  std::vector<std::byte> bytes_;
};

template <class T>
bool fits(int64_t low, int64_t high) {
  return low >= std::numeric_limits<T>::min() && high <= static_cast<int64_t>(std::numeric_limits<T>::max());
}

bool fits_f32(double value) {
  return !std::isfinite(value) || std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max());
}

void Encoder::put_integer(int64_t value) {
  if (fits<uint32_t>(value, value)) {
    put(GgufValueType::kU32);
    put(static_cast<uint32_t>(value));
  } else if (fits<int32_t>(value, value)) {
    put(GgufValueType::kI32);
    put(static_cast<int32_t>(value));
  } else {
    put(GgufValueType::kI64);
    put(value);
  }
}

void Encoder::put_number(double value) {
  if (fits_f32(value)) {
    put(GgufValueType::kF32);
    put(static_cast<float>(value));
  } else {
    put(GgufValueType::kF64);
    put(value);
  }
}

// Arrays of integers are i32 by custom (token types, sizes per layer).
void Encoder::put_items(const std::vector<int64_t>& items) {
  const auto [low, high] = std::minmax_element(items.begin(), items.end());
  if (items.empty() || fits<int32_t>(*low, *high)) {
    put_array<int32_t>(GgufValueType::kI32, items);
  } else if (fits<uint32_t>(*low, *high)) {
    put_array<uint32_t>(GgufValueType::kU32, items);
  } else {
    put_array<int64_t>(GgufValueType::kI64, items);
  }
}

void Encoder::put_items(const std::vector<double>& items) {
  if (std::all_of(items.begin(), items.end(), fits_f32)) {
    put_array<float>(GgufValueType::kF32, items);
  } else {
    put_array<double>(GgufValueType::kF64, items);
  }
}

void Encoder::put_items(const std::vector<bool>& items) {
  put_array<uint8_t>(GgufValueType::kBool, items);
}

void Encoder::put_items(const std::vector<std::string>& items) {
  put_array<std::string_view>(GgufValueType::kString, items);
}

void Encoder::put_value(std::string_view key, const MetadataValue& value) {
  put(key);
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer && (key == kSplitIndexKey || key == kSplitCountKey) && fits<uint16_t>(*integer, *integer)) {
    put(GgufValueType::kU16);
    put(static_cast<uint16_t>(*integer));
  } else if (integer && key == kSplitTensorsKey && fits<int32_t>(*integer, *integer)) {
    put(GgufValueType::kI32);
    put(static_cast<int32_t>(*integer));
  } else if (integer) {
    put_integer(*integer);
  } else if (const auto* large = std::get_if<uint64_t>(&value)) {
    put(GgufValueType::kU64);
    put(*large);
  } else if (const auto* number = std::get_if<double>(&value)) {
    put_number(*number);
  } else if (const auto* boolean = std::get_if<bool>(&value)) {
    put(GgufValueType::kBool);
    put(static_cast<uint8_t>(*boolean));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    put(GgufValueType::kString);
    put(std::string_view(*text));
  } else {
    put(GgufValueType::kArray);
    std::visit([this](const auto& items) { put_items(items); }, std::get<MetadataArray>(value).items);
  }
}

void Encoder::put_tensor(const TensorInfo& tensor) {
  put(std::string_view(tensor.name));
  put(static_cast<uint32_t>(tensor.n_dims));
  for (int i = 0; i < tensor.n_dims; ++i) put(tensor.ne[static_cast<std::size_t>(i)]);
  put(static_cast<uint32_t>(tensor.type));
  put(tensor.offset_bytes);
}

}  // namespace

Result<std::vector<std::byte>> encode_gguf_header(const Metadata& metadata, const std::vector<TensorInfo>& tensors) {
  Encoder out;
  out.put_raw(kGgufMagic);
  out.put(kGgufVersion);
  out.put(static_cast<uint64_t>(tensors.size()));
  out.put(static_cast<uint64_t>(metadata.entries().size()));
  for (const auto& [key, value] : metadata.entries()) {
    if (key.empty() || key.size() > kGgufMaxKeyBytes)
      return Error(ErrorCode::kInvalid,
                   fmt::format("a metadata key has {} bytes; 1 to {} are allowed", key.size(), kGgufMaxKeyBytes),
                   key.substr(0, 64));
    out.put_value(key, value);
  }
  for (const TensorInfo& tensor : tensors) out.put_tensor(tensor);
  return out.take();
}

}  // namespace hocket
