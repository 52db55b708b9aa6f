#include "weights/quantize/row_conversion.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace hocket {
namespace {

// Beyond half precision no scale of a block can hold a value.
constexpr float kMostQuantised = 65504.0f;

enum class Defect { kNone, kNotFinite, kTooLarge, kRefused };

// One thread's rows: to floats, checked, and into `out`.
Defect convert_part(ggml_type from, const std::byte* rows, ggml_type to, std::byte* out, int64_t n_rows, int64_t n_in,
                    const float* importance) {
  std::vector<float> values(static_cast<std::size_t>(n_rows * n_in));
  if (from == GGML_TYPE_F32) {
    std::memcpy(values.data(), rows, values.size() * sizeof(float));
  } else {
    ggml_get_type_traits(from)->to_float(rows, values.data(), n_rows * n_in);
  }
  const bool narrow = to != GGML_TYPE_F32 && to != GGML_TYPE_BF16;
  for (const float value : values) {
    if (!std::isfinite(value)) return Defect::kNotFinite;
    if (narrow && std::fabs(value) > kMostQuantised) return Defect::kTooLarge;
  }
  ggml_quantize_chunk(to, values.data(), out, 0, n_rows, n_in, importance);
  const std::size_t n_bytes = ggml_row_size(to, n_in) * static_cast<std::size_t>(n_rows);
  return ggml_validate_row_data(to, out, n_bytes) ? Defect::kNone : Defect::kRefused;
}

}  // namespace

bool reads_as_floats(ggml_type type) {
  return type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr;
}

Result<std::vector<std::byte>> convert_rows(const TensorInfo& tensor, std::span<const std::byte> rows, ggml_type to,
                                            std::span<const float> importance, int n_threads) {
  const int64_t n_in = tensor.ne[0];
  const std::size_t from_bytes = ggml_row_size(tensor.type, n_in), to_bytes = ggml_row_size(to, n_in);
  const auto n_rows = static_cast<int64_t>(rows.size() / from_bytes);
  std::vector<std::byte> out(to_bytes * static_cast<std::size_t>(n_rows));
  const int64_t n_parts = std::max<int64_t>(1, std::min<int64_t>(n_threads, n_rows));
  std::atomic<Defect> found{Defect::kNone};
  const auto part = [&](int64_t i) {
    const int64_t first = n_rows * i / n_parts, end = n_rows * (i + 1) / n_parts;
    const Defect defect = convert_part(tensor.type, rows.data() + static_cast<std::size_t>(first) * from_bytes, to,
                                       out.data() + static_cast<std::size_t>(first) * to_bytes, end - first, n_in,
                                       importance.empty() ? nullptr : importance.data());
    if (defect != Defect::kNone) found = defect;
  };
  ggml_quantize_init(to);  // here, so that threads do not wait for each other
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < n_parts; ++i) others.emplace_back(part, i);
    part(0);
  }
  switch (found.load()) {
    case Defect::kNone:
      return out;
    case Defect::kNotFinite:
      return Error(ErrorCode::kBadModel, fmt::format("tensor {} has values that are not finite", tensor.name),
                   tensor.name);
    case Defect::kTooLarge:
      return Error(ErrorCode::kBadModel,
                   fmt::format("tensor {} has values beyond {}, which {} cannot hold", tensor.name, kMostQuantised,
                               ggml_type_name(to)),
                   tensor.name);
    case Defect::kRefused:
      break;
  }
  return Error(ErrorCode::kBadModel, fmt::format("tensor {} cannot be held by {}", tensor.name, ggml_type_name(to)),
               tensor.name);
}

}  // namespace hocket
