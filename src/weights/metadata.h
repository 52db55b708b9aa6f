// weights/metadata.h: the typed key-value header of a model file.
//
// Keys are GGUF names ("llama.block_count"). Writers are careless about integer width, so an integer key accepts every
// integer type and checks the range; a float key accepts f32 and f64.
//
// Owns     all values; strings and arrays are copied out of the file.
// Threads  const after load.
// Errors   kBadModel with the key in `param`: missing, wrong type, out of range, wrong array length.
// Cost     look-up O(log n).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace hocket {

struct MetadataArray {
  // Integer elements of every width, bool as 0/1; f32 and f64; strings. Nested arrays are refused by the reader.
  std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>, std::vector<bool>> items;
  std::size_t size() const;
};

using MetadataValue = std::variant<int64_t, uint64_t, double, bool, std::string, MetadataArray>;

class Metadata {
 public:
  // False when the key exists already.
  bool insert(std::string key, MetadataValue value);
  // Replaces or adds (user overrides, tests).
  void set(std::string key, MetadataValue value);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const MetadataValue* find(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& entries() const { return entries_; }

  // Required keys: an Error names the key when it is missing.
  Result<int64_t> integer(std::string_view key, int64_t min = std::numeric_limits<int64_t>::min(),
                          int64_t max = std::numeric_limits<int64_t>::max()) const;
  Result<double> number(std::string_view key) const;  // float, or an integer taken as one; always finite
  Result<bool> boolean(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;

  // Optional keys: the default when missing, an Error when present with the wrong type or range.
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min = std::numeric_limits<int64_t>::min(),
                             int64_t max = std::numeric_limits<int64_t>::max()) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string fallback) const;

  // Arrays; nullptr when the key is missing (not an error). Pointers live as long as this object.
  Result<const std::vector<std::string>*> strings(std::string_view key) const;
  Result<const std::vector<int64_t>*> integers(std::string_view key) const;  // bool arrays are not integers
  Result<const std::vector<double>*> numbers(std::string_view key) const;    // all finite
  Result<const std::vector<bool>*> booleans(std::string_view key) const;

  // A per-layer integer: an array of exactly n entries, or a scalar repeated n times, or `fallback` when missing
  // (an Error when there is no fallback).
  Result<std::vector<int64_t>> per_layer(std::string_view key, std::size_t n, std::optional<int64_t> fallback,
                                         int64_t min, int64_t max) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> entries_;
};

}  // namespace hocket
