// music/blocks/memory_meter.h: what networks would take, instead of running them.
//
// With a meter in MusicCompute weights are declared and not loaded, and graphs are measured and not run: their results
// are zeros. A pipeline then goes through all that it would do in little time and memory.
//
// Owns     the sums.
// Threads  one user at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hocket {

struct NetworkMemory {
  std::string network;
  uint64_t weight_bytes = 0;
  uint64_t compute_bytes = 0;  // of its largest graph, inputs included
  uint64_t total_bytes() const { return weight_bytes + compute_bytes; }
};

class MemoryMeter {
 public:
  void add_weights(const std::string& network, uint64_t bytes) {
    const auto it =
        std::find_if(networks_.begin(), networks_.end(), [&](const auto& n) { return n.network == network; });
    now_ = static_cast<std::size_t>(it - networks_.begin());
    if (it == networks_.end()) networks_.push_back({network, bytes, 0});
  }
  // Of the network whose weights were added last.
  void add_graph(uint64_t bytes) {
    if (now_ < networks_.size()) networks_[now_].compute_bytes = std::max(networks_[now_].compute_bytes, bytes);
  }
  // In the order in which they are needed.
  const std::vector<NetworkMemory>& networks() const { return networks_; }

 private:
  std::vector<NetworkMemory> networks_;
  std::size_t now_ = 0;
};

}  // namespace hocket
