#include "music/solvers/noise.h"

#include <bit>
#include <cmath>

namespace hocket {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  constexpr uint32_t kMultiply0 = 0xD2511F53u, kMultiply1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  constexpr int kRounds = 10;
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c{0, 0, static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiply0) * c[0], p1 = static_cast<uint64_t>(kMultiply1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

float round_to_bfloat16(float value) {
  if (std::isnan(value)) return value;
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits += 0x7FFFu + ((bits >> 16) & 1u);
  return std::bit_cast<float>(bits & 0xFFFF0000u);
}

float normal_at(uint64_t seed, uint64_t k) {
  constexpr float kUnit = 2.3283064e-10f;  // 2⁻³²
  constexpr float kAngle = 1.4629181e-9f;  // 2π · 2⁻³²
  const auto words = philox(seed, k);
  const float u = static_cast<float>(words[0]) * kUnit + kUnit / 2;
  const float v = static_cast<float>(words[1]) * kAngle + kAngle / 2;
  return std::sqrt(-2.0f * std::log(u)) * std::sin(v);
}

std::vector<float> make_noise(uint64_t seed, std::size_t n) {
  std::vector<float> noise(n);
  for (std::size_t k = 0; k < n; ++k) noise[k] = round_to_bfloat16(normal_at(seed, k));
  return noise;
}

}  // namespace hocket
