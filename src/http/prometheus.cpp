#include "http/prometheus.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {
namespace {

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
  const auto it =
      std::find_if(families_.begin(), families_.end(), [&](const Family& family) { return family.name == name; });
  now_ = static_cast<std::size_t>(it - families_.begin());
  if (it == families_.end())
    families_.push_back({std::string(name), fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type)});
}

void PrometheusText::line(std::string_view suffix, Labels labels, double value) {
  Family& family = families_[now_];
  std::string& text = family.text;
  text += family.name;
  text += suffix;
  char separator = '{';
  const auto add = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{}{}=\"{}\"", separator, label, escaped(content));
    separator = ',';
  };
  for (const auto& [label, content] : labels_) add(label, content);
  for (const auto& [label, content] : labels) add(label, content);
  if (separator == ',') text += '}';
  text += fmt::format(" {}\n", value);
}

std::string PrometheusText::take() {
  std::string all;
  for (const Family& family : families_) all += family.text;
  families_.clear();
  return all;
}

void PrometheusText::sample(Labels labels, double value) {
  line("", labels, value);
}

void PrometheusText::single(std::string_view name, std::string_view type, std::string_view help, double value) {
  family(name, type, help);
  sample({}, value);
}

void PrometheusText::histogram(std::string_view name, std::string_view help, const Histogram& values) {
  family(name, "histogram", help);
  uint64_t n = 0;
  for (std::size_t i = 0; i < values.bounds().size(); ++i) {
    n += values.counts()[i];
    line("_bucket", {{"le", fmt::format("{}", values.bounds()[i])}}, static_cast<double>(n));
  }
  n += values.counts().back();
  line("_bucket", {{"le", "+Inf"}}, static_cast<double>(n));
  line("_sum", {}, values.sum());
  line("_count", {}, static_cast<double>(n));
}

}  // namespace hocket
