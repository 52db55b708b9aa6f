#include "weights/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <numeric>
#include <string>

#include "weights/gguf_format.h"
#include "weights/gguf_value.h"

namespace hocket {
namespace {

// The fewest bytes that an entry of each table can have: without them a count is a lie.
constexpr uint64_t kSmallestKeyBytes = 8 + 1 + 4 + 1;         // name, type, value
constexpr uint64_t kSmallestTensorBytes = 8 + 1 + 4 + 4 + 8;  // name, dimensions, type, offset

Error bad_file(std::string message) {
  return Error(ErrorCode::kBadModel, std::move(message));
}

class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, const GgufLimits& limits)
      : limits_(limits), file_bytes_(source.size()), cursor_(source) {}

  Result<GgufHeader> parse();

 private:
  Result<void> read_version();
  Result<uint64_t> read_count(std::string_view what, uint64_t max);
  Result<void> read_key();
  Result<void> read_alignment();
  Result<void> read_tensor();
  Result<TensorInfo> read_tensor_entry(std::string name);
  Result<void> place_tensors();

  Error bad_tensor(const TensorInfo& tensor, std::string_view what) const {
    const std::string name = printable_name(tensor.name);
    return Error(ErrorCode::kBadModel, fmt::format("tensor {}: {}", name, what), name);
  }

  const GgufLimits& limits_;
  const uint64_t file_bytes_;
  ByteCursor cursor_;
  GgufHeader header_;
};

Result<GgufHeader> HeaderParser::parse() {
  TRY(read_version());
  TRY_ASSIGN(const uint64_t n_tensors, read_count("tensors", limits_.max_tensors));
  TRY_ASSIGN(const uint64_t n_keys, read_count("metadata keys", limits_.max_keys));
  TRY(cursor_.require(n_keys * kSmallestKeyBytes + n_tensors * kSmallestTensorBytes, "its tables"));
  for (uint64_t i = 0; i < n_keys; ++i) TRY(read_key());
  TRY(read_alignment());
  TRY(cursor_.require(n_tensors * kSmallestTensorBytes, "the tensor directory"));
  header_.tensors.reserve(static_cast<std::size_t>(n_tensors));
  for (uint64_t i = 0; i < n_tensors; ++i) TRY(read_tensor());
  TRY(place_tensors());
  return std::move(header_);
}

Result<void> HeaderParser::read_version() {
  if (file_bytes_ == 0) return bad_file("the file is empty");
  std::array<uint8_t, 4> magic{};
  TRY(cursor_.read(std::as_writable_bytes(std::span(magic)), "the magic number"));
  if (!std::equal(magic.begin(), magic.end(), kGgufMagic.begin()))
    return bad_file(fmt::format("not a GGUF file: it starts with bytes {:02x}, not with \"{}\"", fmt::join(magic, " "),
                                kGgufMagic));
  TRY_ASSIGN(const auto version, cursor_.value<uint32_t>("the version"));
  if (version != 0 && (version & 0xFFFF) == 0)
    return Error(ErrorCode::kUnsupported, "the file is big-endian; only little-endian GGUF files can be read");
  if (version < kGgufOldestVersion || version > kGgufVersion)
    return Error(ErrorCode::kUnsupported, fmt::format("GGUF version {} (byte 4); only versions {} to {} can be read",
                                                      version, kGgufOldestVersion, kGgufVersion));
  header_.version = static_cast<int>(version);
  return {};
}

Result<uint64_t> HeaderParser::read_count(std::string_view what, uint64_t max) {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(const auto n, cursor_.value<uint64_t>(fmt::format("the number of {}", what)));
  if (n > max) return bad_file(fmt::format("{} {} (byte {}); at most {} are allowed", n, what, at, max));
  return n;
}

Result<void> HeaderParser::read_key() {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(std::string key, cursor_.string(kGgufMaxKeyBytes, "a metadata key"));
  if (key.empty()) return bad_file(fmt::format("empty metadata key at byte {}", at));
  const std::string shown = printable_name(key);
  auto value = read_gguf_value(cursor_, limits_, shown);
  if (!value) {
    Error error = std::move(value).error();
    error.param = shown;
    return error;
  }
  if (!header_.metadata.insert(std::move(key), std::move(value).value()))
    return Error(ErrorCode::kBadModel, fmt::format("metadata key {} occurs twice (again at byte {})", shown, at),
                 shown);
  return {};
}

Result<void> HeaderParser::read_alignment() {
  TRY_ASSIGN(const int64_t alignment, header_.metadata.integer_or(kGgufAlignmentKey, kGgufDefaultAlignment));
  if (alignment < 1 || !is_alignment(static_cast<uint64_t>(alignment), limits_.max_alignment))
    return Error(ErrorCode::kBadModel,
                 fmt::format("metadata key {}: {} is not a power of two up to {}", kGgufAlignmentKey, alignment,
                             limits_.max_alignment),
                 std::string(kGgufAlignmentKey));
  header_.alignment = static_cast<std::size_t>(alignment);
  return {};
}

Result<void> HeaderParser::read_tensor() {
  const uint64_t at = cursor_.position();
  TRY_ASSIGN(std::string name, cursor_.string(limits_.max_name_bytes, "a tensor name"));
  // ggml's own names end at a zero byte: two such names would look alike to it.
  if (name.empty() || name.find('\0') != std::string::npos)
    return bad_file(fmt::format("the tensor name at byte {} is empty or has a zero byte", at));
  const std::string shown = printable_name(name);
  auto tensor = read_tensor_entry(std::move(name));
  if (!tensor) {
    Error error = std::move(tensor).error();
    error.param = shown;
    return error;
  }
  header_.tensors.push_back(std::move(tensor).value());
  return {};
}

Result<TensorInfo> HeaderParser::read_tensor_entry(std::string name) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  TRY_ASSIGN(const auto n_dims, cursor_.value<uint32_t>("the number of dimensions of a tensor"));
  if (n_dims > tensor.ne.size())
    return bad_tensor(tensor, fmt::format("{} dimensions; at most {} are allowed", n_dims, tensor.ne.size()));
  tensor.n_dims = static_cast<int>(std::max(n_dims, 1u));  // without dimensions: a scalar, held as [1]
  for (uint32_t i = 0; i < n_dims; ++i) {
    TRY_ASSIGN(tensor.ne[i], cursor_.value<int64_t>("the size of a tensor"));
    if (tensor.ne[i] < 1) return bad_tensor(tensor, fmt::format("dimension {} has size {}", i, tensor.ne[i]));
  }
  TRY_ASSIGN(const auto type, cursor_.value<uint32_t>("the type of a tensor"));
  if (!is_tensor_type(type)) return bad_tensor(tensor, fmt::format("unknown or removed tensor type {}", type));
  tensor.type = static_cast<ggml_type>(type);
  TRY_ASSIGN(tensor.offset_bytes, cursor_.value<uint64_t>("the offset of a tensor"));
  if (const int64_t block = ggml_blck_size(tensor.type); tensor.ne[0] % block != 0)
    return bad_tensor(tensor, fmt::format("rows of {} elements are not whole blocks of {} ({})", tensor.ne[0], block,
                                          ggml_type_name(tensor.type)));
  tensor.n_bytes = tensor_bytes(tensor.type, tensor.ne);
  if (tensor.n_bytes == 0)
    return bad_tensor(tensor, fmt::format("its size overflows: [{}]", fmt::join(tensor.ne, ", ")));
  return tensor;
}

Result<void> HeaderParser::place_tensors() {
  const uint64_t data_start = aligned_up(cursor_.position(), header_.alignment);
  for (TensorInfo& tensor : header_.tensors) {
    const uint64_t offset = tensor.offset_bytes;
    if (offset % header_.alignment != 0)
      return bad_tensor(tensor,
                        fmt::format("offset {} is not a multiple of the alignment {}", offset, header_.alignment));
    const uint64_t available = data_start < file_bytes_ ? file_bytes_ - data_start : 0;
    if (offset > available || tensor.n_bytes > available - offset)
      return bad_tensor(tensor,
                        fmt::format("its {} bytes at offset {} pass the end of the file: data start at byte {} of {}",
                                    tensor.n_bytes, offset, data_start, file_bytes_));
    tensor.offset_bytes = data_start + offset;
  }
  return {};
}

}  // namespace

Result<GgufHeader> parse_gguf_header(const ByteSource& source, const GgufLimits& limits) {
  try {
    return HeaderParser(source, limits).parse();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, "no memory for the header of the model file");
  }
}

Result<std::vector<uint32_t>> index_by_name(const std::vector<TensorInfo>& tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (tensors[order[i]].name == tensors[order[i - 1]].name) {
      const std::string name = printable_name(tensors[order[i]].name);
      return Error(ErrorCode::kBadModel, fmt::format("tensor {} occurs twice", name), name);
    }
  return order;
}

}  // namespace hocket
