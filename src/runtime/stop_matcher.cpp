#include "runtime/stop_matcher.h"

#include <utility>

#include "runtime/text_automaton.h"

namespace hocket {

struct StopMatcher::State {
  explicit State(std::vector<std::string> strings) : stops(std::move(strings)), automaton(stops) {}

  std::vector<std::string> stops;
  TextAutomaton automaton;
  TextAutomaton::State at = TextAutomaton::kStart;
  std::string held;  // the beginning of a stop string, perhaps
  std::string matched;
  bool stopped = false;
};

StopMatcher::StopMatcher(std::vector<std::string> stops) : state_(std::make_unique<State>(std::move(stops))) {}
StopMatcher::~StopMatcher() = default;
StopMatcher::StopMatcher(StopMatcher&&) noexcept = default;
StopMatcher& StopMatcher::operator=(StopMatcher&&) noexcept = default;

std::string StopMatcher::push(std::string_view text) {
  State& s = *state_;
  if (s.stopped) return {};
  std::string out = std::move(s.held);
  s.held.clear();
  for (const char byte : text) {
    out += byte;
    s.at = s.automaton.next(s.at, byte);
    if (const std::size_t which = s.automaton.match(s.at); which != TextAutomaton::kNoPattern) {
      s.stopped = true;
      s.matched = s.stops[which];
      out.resize(out.size() - s.matched.size());
      return out;
    }
  }
  const std::size_t n_emit = out.size() - s.automaton.depth(s.at);
  s.held = out.substr(n_emit);
  out.resize(n_emit);
  return out;
}

std::string StopMatcher::finish() {
  state_->at = TextAutomaton::kStart;
  return std::exchange(state_->held, {});
}

bool StopMatcher::stopped() const {
  return state_->stopped;
}
const std::string& StopMatcher::matched() const {
  return state_->matched;
}

}  // namespace hocket
