#include "chat/jinja/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hocket::chat_jinja {

namespace jj = jinja;
using jj::value;

namespace {
constexpr std::size_t kMaxValueDepth = 100;
constexpr std::size_t kMaxStackBytes = 3u << 20;
}  // namespace

thread_local Budget* Budget::current_ = nullptr;

void refuse(const std::string& message) {
  throw std::runtime_error(message);
}
bool is_container(const value& v) {
  return jj::is_val<jj::value_array>(v) || jj::is_val<jj::value_object>(v);
}
bool is_text(const value& v) {
  return jj::is_val<jj::value_string>(v);
}
bool is_int(const value& v) {
  return jj::is_val<jj::value_int>(v);
}

Budget::Budget(const TemplateLimits& limits)
    : max_bytes_(limits.max_output_bytes),
      time_(limits.max_render_ms),
      stack_(static_cast<char*>(__builtin_frame_address(0))),
      outer_(current_) {
  current_ = this;
}

// Takes the values apart one by one: they may be nested deeper than destructors may recurse, or form cycles.
Budget::~Budget() {
  for (value& v : kept_) {
    if (auto* object = jj::cast_val<jj::value_object>(v)) object->unordered.clear();
    v->val_arr.clear();
    v->val_obj.clear();
  }
  current_ = outer_;
}

void Budget::tick() {
  const char* here = static_cast<char*>(__builtin_frame_address(0));
  if (stack_ > here && static_cast<std::size_t>(stack_ - here) > kMaxStackBytes) {
    refuse("the template recurses too deeply");
  }
  if (time_.passed()) refuse("the template takes too long");
}

void Budget::check_bytes(double n_bytes) const {
  if (n_bytes > static_cast<double>(max_bytes_)) {
    refuse(fmt::format("the template makes a text of over {} bytes", max_bytes_));
  }
}

void Budget::charge(std::size_t n_bytes) {
  check_bytes(static_cast<double>(n_bytes));
  made_ += n_bytes;
  if (made_ / 16 > max_bytes_) refuse(fmt::format("the template makes texts of over {} bytes in all", max_bytes_ * 16));
}

void Budget::made(const value& v) {
  if (is_text(v)) {
    charge(v->val_str.length() + 64 * v->val_str.parts.size());
  } else if (is_container(v)) {
    const std::size_t n = v->val_arr.size() + v->val_obj.size();
    if (n > kMaxItems) refuse(fmt::format("the template makes a list of over {} items", kMaxItems));
    charge(64 + 16 * n);
    kept_.push_back(v);
  }
}

void Budget::weigh(const value& v, Weight& weight, std::size_t depth) {
  if (depth > kMaxValueDepth) refuse(fmt::format("a value is nested deeper than {} levels", kMaxValueDepth));
  weight.depth = std::max(weight.depth, depth);
  weight.n_bytes += 2;
  if (++weight.n_nodes % 1024 == 0) tick();
  if (is_text(v)) weight.n_bytes += v->val_str.length();
  check_bytes(static_cast<double>(weight.n_bytes));
  for (const value& item : v->val_arr) weigh(item, weight, depth + 1);
  for (const auto& [key, item] : v->val_obj) {
    weigh(key, weight, depth + 1);
    weigh(item, weight, depth + 1);
  }
}

value to_value(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return jj::mk_val<jj::value_bool>(json.get<bool>());
    case Json::value_t::number_integer:
      return jj::mk_val<jj::value_int>(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        return jj::mk_val<jj::value_float>(json.get<double>());
      return jj::mk_val<jj::value_int>(static_cast<int64_t>(json.get<uint64_t>()));
    case Json::value_t::number_float:
      return jj::mk_val<jj::value_float>(json.get<double>());
    case Json::value_t::string:
      return jj::mk_val<jj::value_string>(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      auto array = jj::mk_val<jj::value_array>();
      for (const Json& item : json) array->push_back(to_value(item));
      Budget::current().keep(array);
      return array;
    }
    case Json::value_t::object: {
      auto object = jj::mk_val<jj::value_object>();
      for (const auto& [key, item] : json.items()) object->insert(key, to_value(item));
      Budget::current().keep(object);
      return object;
    }
    default:
      return jj::mk_val<jj::value_none>();
  }
}

}  // namespace hocket::chat_jinja
