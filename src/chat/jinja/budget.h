// chat/jinja/budget.h: what one render of a template may still use, and what its values weigh.
//
// Owns     every list and mapping that the render made, until its end.
// Threads  belongs to the thread that renders; the nodes of the program find it through a thread-local pointer.
// Errors   exceptions, as the engine's own: they end the render and become a Result in program.cpp.
// Cost     tick() reads the clock (chat/jinja/time_limit.h); weigh() walks the value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/jinja/time_limit.h"
#include "chat/template.h"
#include "jinja/value.h"

namespace hocket::chat_jinja {

inline constexpr std::size_t kMaxItems = 100'000;         // of a list, a range, a split
inline constexpr int64_t kMaxInteger = int64_t{1} << 53;  // of an index or a bound

[[noreturn]] void refuse(const std::string& message);
bool is_container(const jinja::value& v);
bool is_text(const jinja::value& v);
bool is_int(const jinja::value& v);

// Size of a value as it would be printed. Shared parts count each time.
struct Weight {
  std::size_t n_nodes = 0;
  std::size_t n_bytes = 0;
  std::size_t depth = 0;
};

class Budget {
 public:
  // Lives in the frame that renders: stack use is measured from there.
  explicit Budget(const TemplateLimits& limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  static Budget& current() { return *current_; }

  // Time and stack.
  void tick();
  // A text of so many bytes is about to be made.
  void check_bytes(double n_bytes) const;
  // It was made.
  void charge(std::size_t n_bytes);
  // Every list, mapping and text that a template makes passes here.
  void made(const jinja::value& v);
  void keep(jinja::value v) { kept_.push_back(std::move(v)); }
  // Adds to `weight`; cycles end at the depth limit.
  void weigh(const jinja::value& v, Weight& weight, std::size_t depth = 0);

 private:
  const std::size_t max_bytes_;
  const TimeLimit time_;
  const char* const stack_;
  std::size_t made_ = 0;
  std::vector<jinja::value> kept_;
  Budget* const outer_;
  static thread_local Budget* current_;
};

// A value of the template language; needs a current budget.
jinja::value to_value(const Json& json);

}  // namespace hocket::chat_jinja
