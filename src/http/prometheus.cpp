#include "http/prometheus.h"

#include <fmt/format.h>

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
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::line(std::string_view suffix, Labels labels, double value) {
  text_ += name_;
  text_ += suffix;
  char separator = '{';
  for (const auto& [label, content] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", separator, label, escaped(content));
    separator = ',';
  }
  if (separator == ',') text_ += '}';
  text_ += fmt::format(" {}\n", value);
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
