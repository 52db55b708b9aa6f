#include "weights/quantize/importance.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "weights/gguf_format.h"
#include "weights/model_file.h"

namespace hocket {
namespace {

constexpr uint64_t kMostBytes = uint64_t{2} << 30;
constexpr int32_t kMostEntries = 1 << 16;
constexpr int32_t kMostNameBytes = 256;
constexpr int32_t kMostValues = 1 << 26;
constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

Error bad(std::string what) {
  return Error(ErrorCode::kInvalid, "the importance matrix " + std::move(what), "--imatrix");
}

Result<std::vector<float>> read_f32(const GgufFile& file, const TensorInfo& tensor) {
  if (tensor.type != GGML_TYPE_F32) return bad(fmt::format("has a tensor {} that is no F32", tensor.name));
  std::vector<float> values(tensor.n_bytes / sizeof(float));
  TRY(file.read(tensor, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

}  // namespace

Result<ImportanceMatrix> ImportanceMatrix::open(const std::string& path) {
  ImportanceMatrix matrix;
  std::array<char, 4> magic{};
  {
    TRY_ASSIGN(const auto file, ModelFile::open(path));
    if (file->size() > kMostBytes) return bad(fmt::format("has more than {} bytes", kMostBytes));
    if (file->size() >= magic.size()) TRY(file->read(0, std::as_writable_bytes(std::span(magic))));
  }
  if (std::string_view(magic.data(), magic.size()) == kGgufMagic) {
    TRY_ASSIGN(const auto file, GgufFile::open(path));
    TRY(matrix.read_gguf(*file));
  } else {
    TRY(matrix.read_legacy(path));
  }
  if (matrix.entries_.empty()) return bad("is empty");
  return matrix;
}

std::span<const float> ImportanceMatrix::find(const std::string& tensor) const {
  const auto it = entries_.find(tensor);
  return it == entries_.end() ? std::span<const float>() : std::span<const float>(it->second);
}

Result<void> ImportanceMatrix::add(const std::string& tensor, std::vector<float> values) {
  for (const float value : values)
    if (!std::isfinite(value) || value < 0)
      return bad(fmt::format("has values of {} that are below zero or not finite", printable_name(tensor)));
  if (!entries_.emplace(tensor, std::move(values)).second)
    return bad(fmt::format("has {} twice", printable_name(tensor)));
  return {};
}

Result<void> ImportanceMatrix::read_gguf(const GgufFile& file) {
  const auto type = file.metadata().string_or("general.type", "");
  if (!type.ok() || *type != "imatrix") return bad("is a GGUF file of another type");
  if (const auto chunks = file.metadata().integer_or("imatrix.chunk_count", 0); chunks.ok()) n_chunks_ = *chunks;
  for (const TensorInfo& sums : file.tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - kSums.size());
    const TensorInfo* counts = file.find(name + std::string(kCounts));
    const int64_t n_matrices = sums.ne[1] * sums.ne[2] * sums.ne[3];
    if (!counts || static_cast<int64_t>(counts->n_bytes / sizeof(float)) != n_matrices)
      return bad(fmt::format("has no counts that fit the sums of {}", printable_name(name)));
    TRY_ASSIGN(std::vector<float> values, read_f32(file, sums));
    TRY_ASSIGN(const std::vector<float> used, read_f32(file, *counts));
    const auto row = static_cast<std::size_t>(sums.ne[0]);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = used[i / row] > 0 ? values[i] / used[i / row] : 0.0f;
    TRY(add(name, std::move(values)));
  }
  return {};
}

// int32 entries; each: int32 length of the name, the name, int32 calls, int32 values, that many floats. What follows
// (the last chunk, the name of the text) is not needed.
Result<void> ImportanceMatrix::read_legacy(const std::string& path) {
  TRY_ASSIGN(const auto file, ModelFile::open(path));
  ByteCursor cursor(*file);
  const auto count = [&](const char* what, int32_t most) -> Result<int32_t> {
    const auto n = cursor.value<int32_t>(what);
    if (!n) return bad(fmt::format("ends early: {}", n.error().message));
    if (*n < 0 || *n > most) return bad(fmt::format("cannot be one: {} is {}", what, *n));
    return *n;
  };
  TRY_ASSIGN(const int32_t n_entries, count("the number of entries", kMostEntries));
  for (int32_t i = 0; i < n_entries; ++i) {
    TRY_ASSIGN(const int32_t name_bytes, count("the length of a name", kMostNameBytes));
    std::string name(static_cast<std::size_t>(name_bytes), '\0');
    if (auto read = cursor.read(std::as_writable_bytes(std::span(name)), "a name"); !read)
      return bad(fmt::format("ends early: {}", read.error().message));
    TRY(count("the number of calls", INT32_MAX));
    TRY_ASSIGN(const int32_t n, count("the number of values", kMostValues));
    if (n == 0) return bad(fmt::format("has no values for {}", printable_name(name)));
    if (auto there = cursor.require(static_cast<uint64_t>(n) * sizeof(float), "values"); !there)
      return bad(fmt::format("ends early: {}", there.error().message));
    std::vector<float> values(static_cast<std::size_t>(n));
    TRY(cursor.read(std::as_writable_bytes(std::span(values)), "values"));
    TRY(add(name, std::move(values)));
  }
  return {};
}

}  // namespace hocket
