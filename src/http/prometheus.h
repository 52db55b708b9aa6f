// http/prometheus.h: the text format of Prometheus, version 0.0.4.
//
//   PrometheusText text;
//   text.family("hocket_requests_total", "counter", "Requests by how they ended.");
//   text.sample({{"outcome", "stop"}}, 12);
//
// Threads  one writer, one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "engine/service_metrics.h"

namespace hocket {

class PrometheusText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Samples follow until the next family. type: counter, gauge, histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, double value);
  // A family of one sample without labels.
  void single(std::string_view name, std::string_view type, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& values);

  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, double value);

  std::string text_;
  std::string name_;
};

}  // namespace hocket
