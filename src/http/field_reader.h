// http/field_reader.h: typed access to the fields of a JSON object from a request.
//
//   FieldReader fields(object, "");
//   request.params.top_k = fields.integer("top_k", -1, 1'000'000);
//   request.user = fields.string("user", 256).value_or("");
//   TRY(fields.check());
//
// null equals absent. The first fault is kept and later reads go on harmlessly, so that a request is read in one
// straight line and judged once.
//
// Threads  one reader, one thread. Borrows the object.
// Errors   check(): kInvalid whose param is the dotted path, as in "response_format.json_schema.schema".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace hocket {

// "a string", "an array", …: how errors call a value.
std::string_view json_kind(const Json& value);

// How deep objects and arrays are nested; 0 for a plain value.
std::size_t json_depth(const Json& value);

class FieldReader {
 public:
  // `value` that is no object is the first fault. `path` is the object's own, "" for the whole body.
  FieldReader(const Json& value, std::string path);

  // The field whatever its type; nullptr when absent or null.
  const Json* find(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }

  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double low, double high);
  // The same, as the sampler wants it.
  std::optional<float> real(std::string_view name, double low, double high);
  // 5.0 is an integer, 5.5 is not. `clamp_high`: more than `high` means `high`.
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high, bool clamp_high = false);
  std::optional<int> small_integer(std::string_view name, int low, int high);
  std::optional<std::string> string(std::string_view name, std::size_t max_bytes);
  std::optional<std::string> one_of(std::string_view name, std::initializer_list<std::string_view> words);
  const Json* object(std::string_view name);
  const Json* array(std::string_view name, std::size_t max_items);

  // Fields that are known and do nothing here.
  void ignore(std::initializer_list<std::string_view> names);

  void fail(std::string_view name, std::string message, ErrorCode code = ErrorCode::kInvalid);
  void fail(Error error);
  bool ok() const { return !fault_.has_value(); }
  Result<void> check() const;

  std::string path_of(std::string_view name) const;
  // Fields that nobody asked for.
  std::vector<std::string> unknown() const;

 private:
  void wrong_kind(std::string_view name, std::string_view wanted, const Json& value);

  const Json* object_ = nullptr;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<Error> fault_;
};

// "messages" and 3 → "messages[3]".
std::string indexed_path(std::string_view path, std::size_t i);

}  // namespace hocket
