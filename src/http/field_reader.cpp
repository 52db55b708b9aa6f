#include "http/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hocket {
namespace {

// 0.5 and not 0.500000; bounds are short.
std::string show(double value) {
  return fmt::format("{:g}", value);
}

}  // namespace

std::string_view json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

std::size_t json_depth(const Json& value) {
  if (!value.is_structured()) return 0;
  std::size_t deepest = 0;  // recursion is bounded by the parser's own limit
  for (const Json& item : value) deepest = std::max(deepest, json_depth(item));
  return deepest + 1;
}

std::string indexed_path(std::string_view path, std::size_t i) {
  return fmt::format("{}[{}]", path, i);
}

FieldReader::FieldReader(const Json& value, std::string path) : path_(std::move(path)) {
  if (value.is_object()) {
    object_ = &value;
  } else {
    const std::string name = path_.empty() ? "the request body" : path_;
    fault_ = Error(ErrorCode::kInvalid, fmt::format("{} must be an object, not {}", name, json_kind(value)), path_);
  }
}

std::string FieldReader::path_of(std::string_view name) const {
  if (path_.empty()) return std::string(name);
  return fmt::format("{}.{}", path_, name);
}

const Json* FieldReader::find(std::string_view name) {
  known_.emplace_back(name);
  if (!object_) return nullptr;
  const auto it = object_->find(known_.back());
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

void FieldReader::fail(Error error) {
  if (!fault_) fault_ = std::move(error);
}

void FieldReader::fail(std::string_view name, std::string message, ErrorCode code) {
  fail(Error(code, std::move(message), path_of(name)));
}

void FieldReader::wrong_kind(std::string_view name, std::string_view wanted, const Json& value) {
  fail(name, fmt::format("{} must be {}, not {}", path_of(name), wanted, json_kind(value)));
}

Result<void> FieldReader::check() const {
  if (fault_) return *fault_;
  return {};
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong_kind(name, "a boolean", *value);
  return std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, double low, double high) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) {
    wrong_kind(name, "a number", *value);
    return std::nullopt;
  }
  const double x = value->get<double>();
  if (x >= low && x <= high) return x;
  fail(name, fmt::format("{} must be between {} and {}", path_of(name), show(low), show(high)));
  return std::nullopt;
}

std::optional<float> FieldReader::real(std::string_view name, double low, double high) {
  const auto x = number(name, low, high);
  if (!x) return std::nullopt;
  return static_cast<float>(*x);
}

std::optional<int64_t> FieldReader::integer(std::string_view name, int64_t low, int64_t high, bool clamp_high) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  // ±2^63 as a double is exact; what lies outside is out of any range.
  constexpr double kLimit = 9223372036854775808.0;
  bool too_high = false, too_low = false;
  int64_t x = 0;
  if (value->is_number_unsigned()) {
    const auto u = value->get<uint64_t>();
    too_high = u > static_cast<uint64_t>(INT64_MAX);
    if (!too_high) x = static_cast<int64_t>(u);
  } else if (value->is_number_integer()) {
    x = value->get<int64_t>();
  } else if (value->is_number_float() && std::trunc(value->get<double>()) == value->get<double>()) {
    const double d = value->get<double>();
    too_high = d >= kLimit;
    too_low = d < -kLimit;
    if (!too_high && !too_low) x = static_cast<int64_t>(d);
  } else {
    if (value->is_number())
      fail(name, fmt::format("{} must be an integer", path_of(name)));
    else
      wrong_kind(name, "an integer", *value);
    return std::nullopt;
  }
  if ((too_high || (!too_low && x > high)) && clamp_high) return high;
  if (!too_high && !too_low && x >= low && x <= high) return x;
  fail(name, low == INT64_MIN || high == INT64_MAX
                 ? fmt::format("{} must be an integer of at least {}", path_of(name), low)
                 : fmt::format("{} must be an integer between {} and {}", path_of(name), low, high));
  return std::nullopt;
}

std::optional<int> FieldReader::small_integer(std::string_view name, int low, int high) {
  const auto x = integer(name, low, high);
  if (!x) return std::nullopt;
  return static_cast<int>(*x);
}

std::optional<std::string> FieldReader::string(std::string_view name, std::size_t max_bytes) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) {
    wrong_kind(name, "a string", *value);
    return std::nullopt;
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() <= max_bytes) return text;
  fail(name, fmt::format("{} is longer than {} bytes", path_of(name), max_bytes));
  return std::nullopt;
}

std::optional<std::string> FieldReader::one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  auto word = string(name, 64);
  if (!word || std::find(words.begin(), words.end(), *word) != words.end()) return word;
  fail(name, fmt::format("{} must be one of: {}", path_of(name), fmt::join(words, ", ")));
  return std::nullopt;
}

const Json* FieldReader::object(std::string_view name) {
  const Json* value = find(name);
  if (!value || value->is_object()) return value;
  wrong_kind(name, "an object", *value);
  return nullptr;
}

const Json* FieldReader::array(std::string_view name, std::size_t max_items) {
  const Json* value = find(name);
  if (!value) return nullptr;
  if (!value->is_array()) {
    wrong_kind(name, "an array", *value);
    return nullptr;
  }
  if (value->size() <= max_items) return value;
  fail(name, fmt::format("{} has more than {} items", path_of(name), max_items));
  return nullptr;
}

void FieldReader::ignore(std::initializer_list<std::string_view> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

std::vector<std::string> FieldReader::unknown() const {
  std::vector<std::string> names;
  if (!object_) return names;
  for (const auto& [name, value] : object_->items())
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) names.push_back(name);
  return names;
}

}  // namespace hocket
