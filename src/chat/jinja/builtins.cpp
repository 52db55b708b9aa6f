#include "chat/jinja/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "chat/jinja/budget.h"

namespace hocket::chat_jinja {

namespace jj = jinja;
using jj::value;

namespace {

constexpr int64_t kMaxIndent = 64;

const value& without_keyword(const value& v) {
  const auto* keyword = jj::cast_val<jj::value_kwarg>(v);
  return keyword ? keyword->val : v;
}

value text_value(std::string text) {
  return jj::mk_val<jj::value_string>(text);
}

// Python's str.split and str.rsplit, in linear time.
value split(const std::string& text, const std::vector<value>& args, bool from_right) {
  const bool by_space = args.empty() || args[0]->is_none();
  const std::string separator = by_space ? std::string() : without_keyword(args[0])->as_string().str();
  if (!by_space && separator.empty()) refuse("empty separator");
  int64_t n_left = args.size() > 1 ? without_keyword(args[1])->as_int() : -1;
  std::vector<value> parts;
  const auto add = [&](std::string part) {
    if (parts.size() >= kMaxItems) refuse(fmt::format("the template splits a text into over {} parts", kMaxItems));
    parts.push_back(text_value(std::move(part)));
  };
  if (by_space) {
    constexpr const char* kSpace = " \t\n\r\f\v";
    std::size_t at = text.find_first_not_of(kSpace);
    while (at != std::string::npos) {
      const std::size_t end = n_left == 0 ? std::string::npos : text.find_first_of(kSpace, at);
      add(text.substr(at, end - at));
      if (end == std::string::npos) break;
      at = text.find_first_not_of(kSpace, end);
      --n_left;
    }
  } else if (from_right) {
    std::size_t end = text.size();
    while (n_left != 0 && end >= separator.size()) {
      const std::size_t at = text.rfind(separator, end - separator.size());
      if (at == std::string::npos) break;
      add(text.substr(at + separator.size(), end - at - separator.size()));
      end = at;
      --n_left;
    }
    add(text.substr(0, end));
    std::reverse(parts.begin(), parts.end());
  } else {
    std::size_t at = 0;
    while (n_left != 0) {
      const std::size_t end = text.find(separator, at);
      if (end == std::string::npos) break;
      add(text.substr(at, end - at));
      at = end + separator.size();
      --n_left;
    }
    add(text.substr(at));
  }
  return jj::mk_val<jj::value_array>(std::move(parts));
}

// Python's str.replace, in linear time.
value replace(const std::string& text, const std::vector<value>& args) {
  const std::string from = without_keyword(args[0])->as_string().str(),
                    to = without_keyword(args[1])->as_string().str();
  int64_t n_left = args.size() > 2 ? without_keyword(args[2])->as_int() : -1;
  const double n_most =
      static_cast<double>(text.size()) / static_cast<double>(std::max<std::size_t>(from.size(), 1)) + 1;
  if (n_most * static_cast<double>(to.size()) > 1e6) {  // worth counting
    double n = 0;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos && at < text.size(); ++n) {
      at += std::max<std::size_t>(from.size(), 1);
    }
    Budget::current().check_bytes(static_cast<double>(text.size()) + (n + 1) * static_cast<double>(to.size()) -
                                  n * static_cast<double>(from.size()));
  }
  std::string out;
  std::size_t at = 0;
  while (n_left != 0) {
    const std::size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    out.append(text, at, found - at).append(to);
    at = found + from.size();
    --n_left;
    if (!from.empty()) continue;
    if (at >= text.size()) break;
    out.push_back(text[at++]);
  }
  if (at < text.size()) out.append(text, at);
  return text_value(std::move(out));
}

// A comparison that is no order would make the sort read beyond its array.
void check_sortable(const value& items, const std::vector<value>& args) {
  value attribute;
  bool by_value = false;
  for (const value& arg : args) {
    const auto* keyword = jj::cast_val<jj::value_kwarg>(arg);
    if (keyword && keyword->key == "attribute") attribute = keyword->val;
    if (keyword && keyword->key == "by") by_value = is_text(keyword->val) && keyword->val->as_string().str() == "value";
  }
  if (!attribute && args.size() > 2 && is_text(args[2])) attribute = args[2];
  bool all_text = true, all_numbers = true;
  const auto look = [&](const value& v) {
    all_text = all_text && is_text(v);
    all_numbers = all_numbers && (is_int(v) || (jj::is_val<jj::value_float>(v) && !std::isnan(v->as_float())));
  };
  value missing = jj::mk_val<jj::value_undefined>();
  for (const value& item : items->val_arr) {
    if (!attribute)
      look(item);
    else
      look(jj::is_val<jj::value_object>(item) ? item->at(attribute, missing) : missing);
  }
  for (const auto& [key, item] : items->val_obj) look(by_value ? item : key);
  if (!all_text && !all_numbers) refuse("sorting needs values of one kind, all texts or all numbers");
}

void check_range(const std::vector<value>& args) {
  int64_t bounds[3] = {0, 0, 1};
  if (args.empty() || args.size() > 3) return;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_int(args[i])) return;
    if (std::abs(static_cast<double>(args[i]->as_int())) > static_cast<double>(kMaxInteger))
      refuse("range() is too large");
    bounds[i] = args[i]->as_int();
  }
  if (args.size() == 1) std::swap(bounds[0], bounds[1]);
  if (bounds[2] != 0 && (bounds[1] - bounds[0]) / bounds[2] > static_cast<int64_t>(kMaxItems)) {
    refuse(fmt::format("range() is longer than {}", kMaxItems));
  }
}

}  // namespace

std::optional<value> before_builtin(const std::string& name, const value& self, const std::vector<value>& args) {
  static const std::set<std::string> kShallow{"append", "count",      "default", "d",      "dict",       "first",
                                              "get",    "items",      "keys",    "last",   "length",     "list",
                                              "map",    "namespace",  "pop",     "reject", "rejectattr", "reverse",
                                              "select", "selectattr", "values"};
  Budget& budget = Budget::current();
  const bool text_self = self && is_text(self);
  if ((name == "split" || name == "rsplit") && text_self) return split(self->as_string().str(), args, name == "rsplit");
  if (name == "replace" && text_self && args.size() >= 2) return replace(self->as_string().str(), args);
  if ((name == "from_json" || name == "fromjson") && text_self) {
    const auto parsed = parse_json(self->as_string().str());
    if (!parsed) refuse(parsed.error().message);
    return to_value(*parsed);
  }
  if (name == "range") check_range(args);
  if ((name == "sort" || name == "dictsort") && self) check_sortable(self, args);
  if (name == "divisibleby" && !args.empty() && (args[0]->val_int == 0 || args[0]->val_int == -1)) {
    refuse("divisibleby(0) and divisibleby(-1) are not defined");
  }
  Weight weight;
  const bool deep = !kShallow.count(name);
  if (self && (deep || is_text(self))) budget.weigh(self, weight);
  double longest = 0;
  for (const value& arg : args) {
    const value& v = without_keyword(arg);
    if (deep || is_text(v)) budget.weigh(v, weight);
    if (is_text(v)) longest = std::max(longest, static_cast<double>(v->val_str.length()));
    if (name.starts_with("select") || name.starts_with("reject")) {
      if (is_text(v) && v->as_string().str() == "divisibleby") refuse("divisibleby is not a test for lists");
    }
    if (name == "indent" || name == "tojson") {
      if (is_int(v) && (v->as_int() < 0 || v->as_int() > kMaxIndent))
        refuse(fmt::format("indent must be 0…{}", kMaxIndent));
      if (is_int(v)) longest = std::max(longest, static_cast<double>(v->as_int()));
    }
  }
  const double n_pieces = static_cast<double>(name == "indent" ? weight.n_bytes : weight.n_nodes);
  if (name == "join" || name == "indent") budget.check_bytes(static_cast<double>(weight.n_bytes) + n_pieces * longest);
  if (name == "tojson") {
    budget.check_bytes(6.0 * static_cast<double>(weight.n_bytes) +
                       n_pieces * longest * static_cast<double>(weight.depth + 2));
  }
  return std::nullopt;
}

}  // namespace hocket::chat_jinja
