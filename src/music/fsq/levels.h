// music/fsq/levels.h: finite scalar quantisation: numbers of a code and the values they stand for.
//
// Each dimension has a few equal steps from −1 to 1; a code counts them with the first dimension fastest.
//
// Threads  const.
// Source   ace-step.md N-37, N-38.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hocket {

class FsqLevels {
 public:
  explicit FsqLevels(std::vector<int64_t> levels);

  std::size_t n_dims() const { return levels_.size(); }
  int64_t n_codes() const { return n_codes_; }
  // code ≥ 0; codes beyond the last wrap, as the language model's vocabulary has more ids than there are codes.
  void values(int64_t code, std::span<float> out) const;
  // x: n_dims numbers of any size.
  int64_t code(std::span<const float> x) const;

 private:
  std::vector<int64_t> levels_;
  int64_t n_codes_ = 1;
};

}  // namespace hocket
