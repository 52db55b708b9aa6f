#include "music/solvers/solver.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "music/solvers/noise.h"

namespace hocket {
namespace {

class Euler : public Solver {
 public:
  void advance(std::span<float> x, std::span<const float> v, float t, float t_next, std::size_t) override {
    const float d = t - t_next;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= v[i] * d;
  }
};

class Sde : public Solver {
 public:
  explicit Sde(uint64_t seed) : seed_(seed) {}
  void advance(std::span<float> x, std::span<const float> v, float t, float t_next, std::size_t step) override {
    const std::vector<float> fresh = make_noise(seed_ + step + 1, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float clean = x[i] - v[i] * t;
      x[i] = t_next * fresh[i] + (1.0f - t_next) * clean;
    }
  }

 private:
  uint64_t seed_;
};

// Velocities and step sizes of the last steps, newest first.
struct Record {
  std::vector<float> v;
  float step = 0;
};

class Dpm3m : public Solver {
 public:
  void advance(std::span<float> x, std::span<const float> v, float t, float t_next, std::size_t) override {
    const float d = t - t_next;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (past_.empty()) {
        x[i] -= d * v[i];
      } else if (past_.size() == 1) {
        x[i] -= d * (1.5f * v[i] - 0.5f * past_[0][i]);
      } else {
        x[i] -= d * (23.0f / 12 * v[i] - 16.0f / 12 * past_[0][i] + 5.0f / 12 * past_[1][i]);
      }
    }
    past_.emplace_front(v.begin(), v.end());
    if (past_.size() > 2) past_.pop_back();
  }

 private:
  std::deque<std::vector<float>> past_;
};

class Stork4 : public Solver {
 public:
  void advance(std::span<float> x, std::span<const float> v, float t, float t_next, std::size_t) override {
    const double d = static_cast<double>(t) - t_next;
    const std::size_t n = x.size();
    std::vector<float> first(n), second(n);
    const int order = derivatives(v, first, second);
    std::vector<float> moved(n);
    bool finite = true;
    for (std::size_t i = 0; i < n; ++i) {
      double change = -d * v[i];
      if (order >= 1) change += d * d / 2 * first[i];
      if (order >= 2) change -= d * d * d / 6 * second[i];
      moved[i] = static_cast<float>(x[i] + change);
      finite &= std::isfinite(moved[i]);
    }
    for (std::size_t i = 0; i < n; ++i) x[i] = finite ? moved[i] : static_cast<float>(x[i] - d * v[i]);
    past_.push_front({{v.begin(), v.end()}, t - t_next});
    if (past_.size() > 2) past_.pop_back();
  }

 private:
  static double rms(std::span<const float> values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, values.size())));
  }

  // Fills what the past tells of dv/dt and d²v/dt²; how many of them may be used.
  int derivatives(std::span<const float> v, std::vector<float>& first, std::vector<float>& second) const {
    constexpr double kWildest = 5.0;  // a derivative that says more than this much of v is noise
    if (past_.empty() || past_[0].step == 0) return 0;
    const double h1 = past_[0].step, size = rms(v);
    for (std::size_t i = 0; i < v.size(); ++i) first[i] = static_cast<float>((past_[0].v[i] - v[i]) / h1);
    if (rms(first) * std::abs(h1) > kWildest * size) return 0;
    if (past_.size() < 2 || past_[1].step == 0) return 1;
    const double h2 = past_[1].step, product = h1 * h2 * (h1 + h2);
    if (std::abs(product) < 1e-30) return 1;
    for (std::size_t i = 0; i < v.size(); ++i)
      second[i] = static_cast<float>(2.0 / product *
                                     (past_[1].v[i] * h1 - past_[0].v[i] * (h1 + h2) + static_cast<double>(v[i]) * h2));
    return rms(second) * h1 * h1 > kWildest * size ? 1 : 2;
  }

  std::deque<Record> past_;
};

}  // namespace

std::optional<SolverKind> parse_solver(std::string_view name) {
  if (name == "euler") return SolverKind::kEuler;
  if (name == "sde") return SolverKind::kSde;
  if (name == "dpm3m") return SolverKind::kDpm3m;
  if (name == "stork4") return SolverKind::kStork4;
  return std::nullopt;
}

std::unique_ptr<Solver> make_solver(SolverKind kind, uint64_t seed) {
  switch (kind) {
    case SolverKind::kEuler:
      return std::make_unique<Euler>();
    case SolverKind::kSde:
      return std::make_unique<Sde>(seed);
    case SolverKind::kDpm3m:
      return std::make_unique<Dpm3m>();
    case SolverKind::kStork4:
      return std::make_unique<Stork4>();
  }
  return std::make_unique<Euler>();
}

}  // namespace hocket
