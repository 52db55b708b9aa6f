// tests/support/numbers.h: comparing rows of numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace hocket::test {

// Σ(a−b)² / Σb².
template <class A, class B>
double nmse(const A& a, const B& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return a.size() == b.size() && norm > 0 ? error / norm : INFINITY;
}

inline std::size_t argmax(std::span<const float> row) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best]) best = i;
  return best;
}

inline std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<float> values(file ? static_cast<std::size_t>(file.tellg()) / sizeof(float) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

}  // namespace hocket::test
