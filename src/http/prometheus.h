// http/prometheus.h: the text format of Prometheus, version 0.0.4.
//
//   PrometheusText text;
//   text.family("hocket_requests_total", "counter", "Requests by how they ended.");
//   text.sample({{"outcome", "stop"}}, 12);
//
// A family may be asked for again, with other labels: its samples stay together, as the format wants it.
//
// Threads  one writer, one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/service_metrics.h"

namespace hocket {

class PrometheusText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Labels that every following sample gets before its own.
  void set_labels(std::vector<std::pair<std::string, std::string>> labels) { labels_ = std::move(labels); }
  // Samples follow until the next family. type: counter, gauge, histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(Labels labels, double value);
  // A family of one sample without labels.
  void single(std::string_view name, std::string_view type, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& values);

  std::string take();

 private:
  void line(std::string_view suffix, Labels labels, double value);

  struct Family {
    std::string name, text;
  };
  std::vector<Family> families_;
  std::size_t now_ = 0;  // the family that samples go to
  std::vector<std::pair<std::string, std::string>> labels_;
};

}  // namespace hocket
