#include "weights/safetensors.h"

#include <fmt/format.h>
#include <ggml.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace hocket {
namespace {

constexpr uint64_t kMostHeaderBytes = 64u << 20;
constexpr std::size_t kMostDims = 8;

std::size_t element_bytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype == "F8_E4M3" || dtype == "F8_E5M2") return 1;
  return 0;
}

Result<SafeTensor> read_entry(const std::string& name, const Json& entry, uint64_t data_at, uint64_t data_bytes) {
  const auto bad = [&](const char* why) {
    return Error(ErrorCode::kBadModel, fmt::format("tensor {}: {}", printable_name(name), why), name);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2)
    return bad("the header's entry is incomplete");
  SafeTensor tensor;
  tensor.dtype = entry["dtype"].get<std::string>();
  if (entry["shape"].size() > kMostDims) return bad("too many dimensions");
  uint64_t n = 1;
  for (const Json& size : entry["shape"]) {
    if (!size.is_number_unsigned()) return bad("a size is no whole number");
    const auto value = size.get<uint64_t>();
    if (value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()) ||
        (value > 0 && n > std::numeric_limits<uint64_t>::max() / 16 / value))
      return bad("a size is too large");
    n *= value;
    tensor.shape.push_back(static_cast<int64_t>(value));
  }
  for (const Json& offset : entry["data_offsets"])
    if (!offset.is_number_unsigned()) return bad("an offset is no whole number");
  const auto begin = entry["data_offsets"][0].get<uint64_t>(), end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > data_bytes) return bad("its data pass the end of the file");
  const std::size_t width = element_bytes(tensor.dtype);
  if (width != 0 && end - begin != n * width) return bad("its size in bytes does not fit its shape");
  tensor.offset_bytes = data_at + begin;
  tensor.n_bytes = end - begin;
  return tensor;
}

}  // namespace

uint64_t SafeTensor::n_elements() const {
  uint64_t n = 1;
  for (const int64_t size : shape) n *= static_cast<uint64_t>(size);
  return n;
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  std::unique_ptr<SafetensorsFile> result(new SafetensorsFile);
  TRY_ASSIGN(result->file_, ModelFile::open(path));
  const uint64_t size = result->file_->size();
  const auto bad = [&](const std::string& why) {
    return Error(ErrorCode::kBadModel, fmt::format("{} is no safetensors file: {}", path, why), path);
  };
  uint64_t header_bytes = 0;
  if (size < sizeof header_bytes) return bad("it is too short");
  TRY(result->file_->read(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > size - sizeof header_bytes || header_bytes > kMostHeaderBytes)
    return bad(fmt::format("a header of {} bytes", header_bytes));
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  TRY(result->file_->read(sizeof header_bytes, std::as_writable_bytes(std::span(text))));
  const auto header = parse_json(text, {.max_depth = 8, .max_nodes = 4'000'000});
  if (!header.ok()) return bad(header.error().message);
  if (!header->is_object()) return bad("its header is no object");

  const uint64_t data_at = sizeof header_bytes + header_bytes;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return bad("__metadata__ is no object");
      for (const auto& [key, value] : entry.items())
        if (value.is_string()) result->metadata_[key] = value.get<std::string>();
      continue;
    }
    TRY_ASSIGN(result->tensors_[name], read_entry(name, entry, data_at, size - data_at));
  }
  return result;
}

const SafeTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

std::string SafetensorsFile::metadata(std::string_view key) const {
  const auto at = metadata_.find(key);
  return at == metadata_.end() ? std::string() : at->second;
}

bool SafetensorsFile::readable(const SafeTensor& tensor) {
  return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16";
}

Result<std::vector<float>> SafetensorsFile::read(const SafeTensor& tensor) const {
  if (!readable(tensor)) return Error(ErrorCode::kUnsupported, fmt::format("type {} is not read", tensor.dtype));
  std::vector<std::byte> bytes(tensor.n_bytes);
  TRY(file_->read(tensor.offset_bytes, bytes));
  std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
  const auto n = static_cast<int64_t>(values.size());
  if (values.empty()) return values;
  if (tensor.dtype == "F32") {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  } else if (tensor.dtype == "F16") {
    ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(bytes.data()), values.data(), n);
  } else {
    ggml_bf16_to_fp32_row(reinterpret_cast<const ggml_bf16_t*>(bytes.data()), values.data(), n);
  }
  return values;
}

}  // namespace hocket
