#include "weights/metadata.h"

#include <fmt/format.h>

#include <cmath>

namespace hocket {
namespace {

Error bad_key(std::string_view key, std::string_view what) {
  return Error(ErrorCode::kBadModel, fmt::format("metadata key {}: {}", key, what), std::string(key));
}

Error missing(std::string_view key) {
  return bad_key(key, "missing");
}

std::string describe(const MetadataValue& value) {
  struct {
    std::string operator()(int64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(uint64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(double v) const { return fmt::format("the float {}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string&) const { return "a string"; }
    std::string operator()(const MetadataArray& v) const {
      constexpr const char* kItems[] = {"integers", "floats", "strings", "booleans"};
      return fmt::format("an array of {} {}", v.size(), kItems[v.items.index()]);
    }
  } name;
  return std::visit(name, value);
}

Error wrong_type(std::string_view key, std::string_view wanted, const MetadataValue& value) {
  return bad_key(key, fmt::format("expected {}, found {}", wanted, describe(value)));
}

Result<int64_t> to_integer(std::string_view key, const MetadataValue& value, int64_t min, int64_t max) {
  const auto* small = std::get_if<int64_t>(&value);
  if (!small && !std::holds_alternative<uint64_t>(value)) return wrong_type(key, "an integer", value);
  if (!small || *small < min || *small > max)  // what is held as uint64_t passes every int64_t
    return bad_key(key, fmt::format("{} is not in {} … {}", describe(value), min, max));
  return *small;
}

Result<double> to_number(std::string_view key, const MetadataValue& value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<uint64_t>(&value)) return static_cast<double>(*v);
  const auto* v = std::get_if<double>(&value);
  if (!v) return wrong_type(key, "a number", value);
  if (!std::isfinite(*v)) return bad_key(key, fmt::format("{} is not finite", *v));
  return *v;
}

template <class T>
Result<T> to_exact(std::string_view key, const MetadataValue& value, std::string_view wanted) {
  if (const auto* v = std::get_if<T>(&value)) return *v;
  return wrong_type(key, wanted, value);
}

template <class Item>
Result<const std::vector<Item>*> to_items(std::string_view key, const MetadataValue* value, std::string_view wanted) {
  if (!value) return static_cast<const std::vector<Item>*>(nullptr);
  if (const auto* array = std::get_if<MetadataArray>(value))
    if (const auto* items = std::get_if<std::vector<Item>>(&array->items)) return items;
  return wrong_type(key, wanted, *value);
}

}  // namespace

std::size_t MetadataArray::size() const {
  return std::visit([](const auto& v) { return v.size(); }, items);
}

bool Metadata::insert(std::string key, MetadataValue value) {
  return entries_.try_emplace(std::move(key), std::move(value)).second;
}

void Metadata::set(std::string key, MetadataValue value) {
  entries_.insert_or_assign(std::move(key), std::move(value));
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

Result<int64_t> Metadata::integer(std::string_view key, int64_t min, int64_t max) const {
  const MetadataValue* value = find(key);
  if (!value) return missing(key);
  return to_integer(key, *value, min, max);
}

Result<double> Metadata::number(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (!value) return missing(key);
  return to_number(key, *value);
}

Result<bool> Metadata::boolean(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (!value) return missing(key);
  return to_exact<bool>(key, *value, "a boolean");
}

Result<std::string> Metadata::string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (!value) return missing(key);
  return to_exact<std::string>(key, *value, "a string");
}

Result<int64_t> Metadata::integer_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

Result<double> Metadata::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

Result<std::string> Metadata::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : std::move(fallback);
}

Result<const std::vector<std::string>*> Metadata::strings(std::string_view key) const {
  return to_items<std::string>(key, find(key), "an array of strings");
}

Result<const std::vector<int64_t>*> Metadata::integers(std::string_view key) const {
  return to_items<int64_t>(key, find(key), "an array of integers");
}

Result<const std::vector<double>*> Metadata::numbers(std::string_view key) const {
  TRY_ASSIGN(const std::vector<double>* items, to_items<double>(key, find(key), "an array of floats"));
  for (std::size_t i = 0; items && i < items->size(); ++i)
    if (!std::isfinite((*items)[i])) return bad_key(key, fmt::format("element {} ({}) is not finite", i, (*items)[i]));
  return items;
}

Result<const std::vector<bool>*> Metadata::booleans(std::string_view key) const {
  return to_items<bool>(key, find(key), "an array of booleans");
}

Result<std::vector<int64_t>> Metadata::per_layer(std::string_view key, std::size_t n, std::optional<int64_t> fallback,
                                                 int64_t min, int64_t max) const {
  const MetadataValue* value = find(key);
  if (!value && !fallback) return missing(key);
  if (!value) return std::vector<int64_t>(n, *fallback);
  if (!std::holds_alternative<MetadataArray>(*value)) {
    TRY_ASSIGN(const int64_t scalar, to_integer(key, *value, min, max));
    return std::vector<int64_t>(n, scalar);
  }
  TRY_ASSIGN(const std::vector<int64_t>* items, integers(key));
  if (items->size() != n)
    return bad_key(key, fmt::format("expected one integer or {} (one per layer), found {}", n, items->size()));
  for (std::size_t i = 0; i < n; ++i)
    if ((*items)[i] < min || (*items)[i] > max)
      return bad_key(key, fmt::format("element {} ({}) is not in {} … {}", i, (*items)[i], min, max));
  return *items;
}

}  // namespace hocket
