// runtime/stop_matcher.h: finds stop strings in text that arrives in pieces.
//
// Text that may be the beginning of a stop string is held back until it is decided; a stop string is never emitted.
//
// Threads  one user at a time.
// Cost     linear in the text (automaton over all stop strings).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hocket {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);
  ~StopMatcher();
  StopMatcher(StopMatcher&&) noexcept;
  StopMatcher& operator=(StopMatcher&&) noexcept;

  // Text that can be emitted now. After a match nothing is emitted any more.
  std::string push(std::string_view text);
  // What was held back and did not become a stop string.
  std::string finish();
  bool stopped() const;
  const std::string& matched() const;  // the stop string, when stopped()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hocket
