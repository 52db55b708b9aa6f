// The arrays of tests/data/music: inputs and expected outputs of every stage.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "music/blocks/network_graph.h"

namespace hocket::test {

inline std::string music_data(const std::string& name) {
  return std::string(HOCKET_TEST_DATA) + "/music/" + name;
}

inline nlohmann::json music_json(const std::string& name) {
  std::ifstream in(music_data(name));
  return nlohmann::json::parse(in);
}

class Golden {
 public:
  explicit Golden(const std::string& name) {
    static const nlohmann::json index = music_json("index.json");
    for (const auto& c : index["cases"])
      if (c["name"] == name) case_ = c;
    EXPECT_FALSE(case_.is_null()) << "no golden case " << name;
  }

  const nlohmann::json& params() const { return case_["params"]; }
  std::string model() const { return music_data(case_["model"].get<std::string>()); }
  bool has(const std::string& array) const { return !find(array).is_null(); }
  double tolerance(const std::string& array) const { return find(array).value("tolerance", 0.0); }
  std::vector<int64_t> shape(const std::string& array) const { return find(array)["shape"]; }
  std::vector<float> floats(const std::string& array) const { return read<float>(array, "float32"); }
  std::vector<int32_t> ints(const std::string& array) const { return read<int32_t>(array, "int32"); }

  // Names of the arrays of one role: "input", "intermediate", "output".
  std::vector<std::string> names(const std::string& role) const {
    std::vector<std::string> found;
    for (const auto& a : case_["arrays"])
      if (a["role"] == role) found.push_back(a["name"]);
    return found;
  }

 private:
  nlohmann::json find(const std::string& array) const {
    for (const auto& a : case_["arrays"])
      if (a["name"] == array) return a;
    return nullptr;
  }
  template <class T>
  std::vector<T> read(const std::string& array, const char* dtype) const {
    const nlohmann::json a = find(array);
    EXPECT_FALSE(a.is_null()) << "no array " << array;
    if (a.is_null()) return {};
    EXPECT_EQ(a["dtype"], dtype) << array;
    std::size_t n = 1;
    for (const auto& size : a["shape"]) n *= size.get<std::size_t>();
    std::vector<T> values(n);
    std::ifstream in(music_data(a["file"].get<std::string>()), std::ios::binary);
    in.seekg(a["offset"].get<std::streamoff>());
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(n * sizeof(T)));
    EXPECT_TRUE(in.good()) << array;
    return values;
  }

  nlohmann::json case_;
};

// ‖a − b‖ / ‖b‖ over the elements of b; a may have more (further samples).
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() < b.size()) return HUGE_VAL;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

// Every tap that the golden case has, within its tolerance.
inline void expect_taps(const Golden& golden, const Taps& taps) {
  for (const auto& [name, values] : taps) {
    if (!golden.has(name)) continue;
    EXPECT_LE(relative_error(values, golden.floats(name)), golden.tolerance(name)) << name;
  }
}

template <class T>
T value_or_fail(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

// One thread as a rule: on a busy machine several wait for each other at every node of small graphs.
inline MusicCompute test_compute(int n_threads = 1) {
  return value_or_fail(MusicCompute::create({}, n_threads));
}

}  // namespace hocket::test
