// music/solvers/noise.h: normal noise as a function of seed and position alone.
//
// Threads  pure functions.
// Source   ace-step.md S-18: Philox4x32-10 (Salmon et al., 2011) and Box-Muller in float32, rounded to bfloat16. Equals
//          what PyTorch draws on CUDA for a bfloat16 tensor with one element a thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter);
float round_to_bfloat16(float value);  // ties to even

// Element k before rounding.
float normal_at(uint64_t seed, uint64_t k);
// Elements 0 … n − 1, rounded.
std::vector<float> make_noise(uint64_t seed, std::size_t n);

}  // namespace hocket
