// compute/crew.h: threads that help with an operation when they are awake in time.
//
// ggml's threads meet at a barrier after every operation of a graph. Where another process holds one of the cores, each
// of some hundred barriers a token waits until the system lets the missing thread run. Here nobody waits for a thread
// that has not begun: the caller does what is left, and only what a helper has taken is waited for. So a step of few
// tokens, whose operations take microseconds, costs at worst what it costs on one core.
//
// Helpers spin for some microseconds after an operation, then sleep.
//
// Owns     n_threads − 1 threads; the caller of run() is the last one.
// Threads  one run() at a time.
// Errors   create(): kOutOfMemory.
// Cost     run() about a microsecond beside the work; a helper that sleeps is woken by a system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"

namespace hocket {

class Crew {
 public:
  static Result<std::unique_ptr<Crew>> create(int n_threads);  // ≥ 1
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int n_threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls unit(i) once for every i in [0, n_units), in any order, and returns when all are done. Not from a unit.
  template <class Unit>
  void run(int64_t n_units, const Unit& unit) {
    run({[](const void* data, int64_t i) { (*static_cast<const Unit*>(data))(i); }, &unit, n_units});
  }

  // The crew that helps this thread with the operations of a graph, while a Helped lives; else nullptr.
  static Crew* current();
  class Helped {
   public:
    explicit Helped(Crew& crew);
    ~Helped();
    Helped(const Helped&) = delete;
    Helped& operator=(const Helped&) = delete;
  };

 private:
  struct Job {
    void (*call)(const void* data, int64_t i) = nullptr;
    const void* data = nullptr;
    int64_t n_units = 0;
  };
  Crew() = default;
  void run(const Job& job);
  void take_units();
  void help();

  std::vector<std::thread> threads_;
  // Whoever counts itself in n_inside_ and finds the job open still may use job_ and next_, which change only when
  // nobody is inside.
  std::atomic<bool> open_{false};
  std::atomic<uint32_t> n_jobs_{0};  // what sleepers wait for
  std::atomic<int> n_inside_{0}, n_asleep_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stopping_{false};
  Job job_;
};

}  // namespace hocket
