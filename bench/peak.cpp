// What this machine can do: multiply-adds a second by instruction set, and bytes read a second, for one thread and for
// all. Speeds of kernels are quoted as shares of these.
//
//   peak [--threads N] [--seconds S] [--cpu-time] [--json FILE]
//
// An operation is a multiplication or an addition. The loops keep enough sums in registers to hide the latencies and
// touch no memory. Reading streams over a buffer that no cache holds. --cpu-time divides by the processor time that the
// threads got instead of the time of the clock: for machines with other work to do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "compute/device.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

constexpr int kSums = 12;       // independent chains: latency × units of every CPU that this was made for
constexpr int kRounds = 20000;  // of a call, some microseconds

struct Probe {
  std::string name;
  double operations;  // of a call
  std::function<void()> run;
};

#if defined(__x86_64__)
// The compiler must neither move a chain nor take two of them for one.
#define HOCKET_KEEP_X(v) asm volatile("" : "+x"(v))
#define HOCKET_KEEP_V(v) asm volatile("" : "+v"(v))

__attribute__((target("avx2,fma"))) void fma_avx2() {
  __m256 sums[kSums], a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  for (auto& s : sums) s = _mm256_setzero_ps();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm256_fmadd_ps(a, s, b);
  for (auto& s : sums) HOCKET_KEEP_X(s);
}

// The usual three instructions of a product of bytes where there is no dot product.
__attribute__((target("avx2"))) void int8_avx2() {
  __m256i sums[kSums], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2), ones = _mm256_set1_epi16(1);
  for (auto& s : sums) s = _mm256_setzero_si256();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) {
      HOCKET_KEEP_X(a);
      s = _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  for (auto& s : sums) HOCKET_KEEP_X(s);
}

__attribute__((target("avx512f"))) void fma_avx512() {
  __m512 sums[kSums], a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  for (auto& s : sums) s = _mm512_setzero_ps();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm512_fmadd_ps(a, s, b);
  for (auto& s : sums) HOCKET_KEEP_V(s);
}

__attribute__((target("avx512f,avx512vl,avx512vnni"))) void int8_vnni_256() {
  __m256i sums[kSums], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2);
  for (auto& s : sums) s = _mm256_setzero_si256();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm256_dpbusd_epi32(s, a, b);
  for (auto& s : sums) HOCKET_KEEP_V(s);
}

__attribute__((target("avx512f,avx512vnni"))) void int8_vnni_512() {
  __m512i sums[kSums], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
  for (auto& s : sums) s = _mm512_setzero_si512();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm512_dpbusd_epi32(s, a, b);
  for (auto& s : sums) HOCKET_KEEP_V(s);
}

__attribute__((target("avx2,avxvnni"))) void int8_avx_vnni() {
  __m256i sums[kSums], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2);
  for (auto& s : sums) s = _mm256_setzero_si256();
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm256_dpbusd_avx_epi32(s, a, b);
  for (auto& s : sums) HOCKET_KEEP_X(s);
}

__attribute__((target("avx512f,avx512bf16"))) void bf16_avx512() {
  __m512 sums[kSums];
  for (auto& s : sums) s = _mm512_setzero_ps();
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = _mm512_dpbf16_ps(s, a, a);
  for (auto& s : sums) HOCKET_KEEP_V(s);
}

std::vector<Probe> arithmetic() {
  const double steps = static_cast<double>(kSums) * kRounds;
  std::vector<Probe> probes;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    probes.push_back({"float, AVX2 FMA", steps * 2 * 8, fma_avx2});
    probes.push_back({"int8, AVX2 maddubs", steps * 2 * 32, int8_avx2});
  }
  // __builtin_cpu_supports does not know AVX-VNNI in every compiler: CPUID 7.1, EAX bit 4.
  unsigned eax = 0;
  if (__builtin_cpu_supports("avx2")) asm volatile("cpuid" : "=a"(eax) : "a"(7), "c"(1) : "ebx", "edx");
  if (eax & (1u << 4)) probes.push_back({"int8, AVX-VNNI", steps * 2 * 32, int8_avx_vnni});
  if (__builtin_cpu_supports("avx512f")) probes.push_back({"float, AVX-512 FMA", steps * 2 * 16, fma_avx512});
  if (__builtin_cpu_supports("avx512vnni")) {
    if (__builtin_cpu_supports("avx512vl"))
      probes.push_back({"int8, AVX-512 VNNI, 256 bits", steps * 2 * 32, int8_vnni_256});
    probes.push_back({"int8, AVX-512 VNNI", steps * 2 * 64, int8_vnni_512});
  }
  if (__builtin_cpu_supports("avx512bf16")) probes.push_back({"bf16, AVX-512 BF16", steps * 2 * 32, bf16_avx512});
  return probes;
}
#elif defined(__aarch64__)
void fma_neon() {
  float32x4_t sums[kSums], a = vdupq_n_f32(0.5f), b = vdupq_n_f32(0.25f);
  for (auto& s : sums) s = vdupq_n_f32(0.0f);
  for (int r = 0; r < kRounds; ++r)
    for (auto& s : sums) s = vfmaq_f32(b, a, s);
  for (auto& s : sums) asm volatile("" : "+w"(s));
}

std::vector<Probe> arithmetic() {
  const double steps = static_cast<double>(kSums) * kRounds;
  return {{"float, NEON FMA", steps * 2 * 4, fma_neon}};
}
#else
std::vector<Probe> arithmetic() {
  return {};
}
#endif

// Eight sums of words: the compiler makes vectors of them, and no addition waits for the one before.
uint64_t add_up(const uint64_t* words, std::size_t n) {
  uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= n; i += 8)
    for (std::size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  return total;
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Calls of each thread's function a second of `clock`, all threads together, over about `seconds`.
double calls_per_second(int n_threads, double seconds, clockid_t clock, const std::function<void(int)>& call) {
  std::atomic<int> n_ready{0};
  std::atomic<double> total{0.0};
  const auto work = [&](int thread) {
    call(thread);
    ++n_ready;
    while (n_ready < n_threads) {
    }
    const double start = seconds_of(clock);
    std::size_t n_calls = 0;
    double elapsed = 0;
    do {
      call(thread);
      ++n_calls;
      elapsed = seconds_of(clock) - start;
    } while (elapsed < seconds);
    const double mine = static_cast<double>(n_calls) / elapsed;
    for (double old = total; !total.compare_exchange_weak(old, old + mine);) {
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < n_threads; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  int n_threads = hocket::physical_cores();
  double seconds = 0.25;
  std::string json_path;
  int repeats = 5;
  bool cpu_time = false;
  CLI::App app("multiply-adds and bytes a second of this machine");
  app.add_option("-t,--threads", n_threads, "threads of the second column")->check(CLI::Range(1, 512));
  app.add_option("--seconds", seconds, "of each measurement")->check(CLI::Range(0.01, 60.0))->capture_default_str();
  app.add_option("--repeats", repeats, "measurements, the best of which counts")->check(CLI::Range(1, 1000));
  app.add_flag("--cpu-time", cpu_time, "a second is one of processor time, not of the clock");
  app.add_option("--json", json_path, "also write the table there");
  CLI11_PARSE(app, argc, argv);

  const std::vector<int> counts = n_threads == 1 ? std::vector<int>{1} : std::vector<int>{1, n_threads};
  nlohmann::json rows = nlohmann::json::array();
  std::string head = "| what |", rule = "|---|";
  for (const int n : counts) {
    head += fmt::format(" {} thread{} |", n, n == 1 ? "" : "s");
    rule += "---:|";
  }
  fmt::print("{}\n{}\n", head, rule);

  const auto report = [&](const std::string& name, const char* unit, double each,
                          const std::function<void(int)>& call) {
    nlohmann::json row{{"name", name}, {"unit", unit}};
    std::string line = fmt::format("| {} |", name);
    for (const int n : counts) {
      double best = 0;  // noise only slows down
      for (int r = 0; r < repeats; ++r)
        best = std::max(best, calls_per_second(n, seconds, cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, call) *
                                  each / 1e9);
      row[std::to_string(n)] = best;
      line += fmt::format(" {:.1f} {} |", best, unit);
    }
    fmt::print("{}\n", line);
    rows.push_back(std::move(row));
  };
  for (const Probe& probe : arithmetic()) report(probe.name, "GOPS", probe.operations, [&](int) { probe.run(); });

  // Far more than a last-level cache holds for each thread; every call reads the next part.
  constexpr std::size_t kBytes = std::size_t{512} << 20, kPart = std::size_t{8} << 20;
  struct Reader {
    std::vector<uint64_t> words;
    std::size_t at = 0;
    uint64_t sum = 0;
  };
  std::vector<Reader> readers(static_cast<std::size_t>(n_threads));
  for (Reader& reader : readers) reader.words.assign(kBytes / sizeof(uint64_t) / readers.size(), 1);
  report("reading memory", "GB/s", static_cast<double>(kPart), [&](int thread) {
    Reader& reader = readers[static_cast<std::size_t>(thread)];
    const std::size_t n = kPart / sizeof(uint64_t);
    if (reader.at + n > reader.words.size()) reader.at = 0;
    volatile uint64_t keep = reader.sum += add_up(reader.words.data() + reader.at, n);
    (void)keep;
    reader.at += n;
  });
  if (!json_path.empty()) {
    std::ofstream out(json_path);
    out << nlohmann::json{{"threads", n_threads}, {"rows", rows}}.dump(1) << "\n";
    if (!out.flush()) {
      fmt::print(stderr, "peak: cannot write {}\n", json_path);
      return 1;
    }
  }
  return 0;
}
