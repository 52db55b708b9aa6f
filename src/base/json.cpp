#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace hocket {
namespace {

// Builds the value by hand so that depth, size and duplicate keys are checked while reading, not afterwards.
class LimitedBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit LimitedBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(number_integer_t v) override { return add(v); }
  bool number_unsigned(number_unsigned_t v) override { return add(v); }
  bool number_float(number_float_t v, const string_t& text) override {
    if (!std::isfinite(v)) return fail(fmt::format("number {} is out of range", text));
    return add(v);
  }
  bool string(string_t& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) return fail(fmt::format("duplicate key \"{}\"", name));
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …": the tag says nothing to a person.
    std::string text = e.what();
    if (const auto end = text.find("] "); text.starts_with("[json.exception") && end != std::string::npos)
      text.erase(0, end + 2);
    return fail(std::move(text), position);
  }

  Json take_root() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool fail(std::string message, std::size_t = 0) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  bool count() {
    return ++n_nodes_ <= limits_.max_nodes || fail(fmt::format("more than {} values", limits_.max_nodes));
  }
  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Keys are unique, so the object's own linear look-up would be wasted.
    auto& object = parent.get_ref<Json::object_t&>();
    static_cast<Json::object_t::Container&>(object).emplace_back(std::move(key_), std::move(value));
    return &object.back().second;
  }
  bool add(Json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (!count()) return false;
    if (stack_.size() >= limits_.max_depth) return fail(fmt::format("nested deeper than {} levels", limits_.max_depth));
    stack_.push_back(place(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> stack_;  // open containers; only the innermost one grows, so the pointers stay valid
  std::vector<std::set<std::string>> keys_;
  std::string key_;
  std::size_t n_nodes_ = 0;
  std::string error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  LimitedBuilder builder(limits);
  try {
    if (Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take_root();
  } catch (const std::exception& e) {
    return Error(ErrorCode::kInvalid, fmt::format("invalid JSON: {}", e.what()));
  }
  return Error(ErrorCode::kInvalid, fmt::format("invalid JSON: {}", builder.error()));
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hocket
