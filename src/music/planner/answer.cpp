#include "music/planner/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace hocket {
namespace {

constexpr float kDefaultSeconds = 120;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

std::string field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  while (!text.empty() && (text.front() == ' ' || text.front() == '\'')) text.remove_prefix(1);
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\'' || text.back() == '\r')) text.remove_suffix(1);
  return std::string(text);
}

std::string caption_of(std::string_view text) {
  constexpr std::string_view kKey = "caption:";
  const std::size_t at = text.find(kKey);
  // Its first line is never empty where there is a caption.
  if (at == std::string_view::npos || field(text, kKey).empty()) return {};
  text.remove_prefix(at + kKey.size());
  std::size_t end = text.find("\nduration:");
  if (end == std::string_view::npos) end = text.find("\nkeyscale:");
  text = text.substr(0, end);
  std::string out;
  for (const char c : text) {
    const char plain = c == '\n' ? ' ' : c;
    if (plain == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += plain;
  }
  while (!out.empty() && is_space(out.back())) out.pop_back();
  out.erase(out.begin(), std::find_if_not(out.begin(), out.end(), is_space));
  return out;
}

std::string lyrics_of(std::string_view text) {
  constexpr std::string_view kHeading = "# Lyric\n";
  constexpr std::size_t kHeadingWithin = 64;
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  if (const std::size_t at = text.find(kHeading); at != std::string_view::npos && at < kHeadingWithin)
    text.remove_prefix(at + kHeading.size());
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

PlannerAnswer parse_answer(std::string_view text) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  PlannerAnswer answer;
  std::string_view thought = text;
  if (const std::size_t end = text.find(kEnd); end != std::string_view::npos) {
    const std::size_t begin = text.find(kBegin);
    const std::size_t from = begin != std::string_view::npos && begin < end ? begin + kBegin.size() : 0;
    thought = text.substr(from, end - from);
    answer.lyrics = lyrics_of(text.substr(end + kEnd.size()));
  }
  const long bpm = std::strtol(field(thought, "bpm:").c_str(), nullptr, 10);
  answer.bpm = static_cast<int>(std::clamp(bpm, 0L, 1'000'000L));
  const float duration = std::strtof(field(thought, "duration:").c_str(), nullptr);
  if (std::isfinite(duration)) answer.duration = duration;
  answer.keyscale = field(thought, "keyscale:");
  answer.timesignature = field(thought, "timesignature:");
  answer.language = field(thought, "language:");
  answer.caption = caption_of(thought);
  return answer;
}

MusicRequest merge_answer(MusicRequest base, const PlannerAnswer& answer, const MergeRules& rules,
                          const MusicRequest& asked) {
  if (base.bpm <= 0) base.bpm = answer.bpm;
  if (base.duration <= 0) base.duration = answer.duration;
  if (base.keyscale.empty()) base.keyscale = answer.keyscale;
  if (base.timesignature.empty()) base.timesignature = answer.timesignature;
  if (base.vocal_language.empty() || base.vocal_language == "unknown")
    if (!answer.language.empty()) base.vocal_language = answer.language;
  if (rules.take_caption && !answer.caption.empty()) base.caption = answer.caption;
  if (rules.take_lyrics && !answer.lyrics.empty()) base.lyrics = answer.lyrics;
  if (base.duration <= 0) base.duration = kDefaultSeconds;
  base.duration = std::min(base.duration, kLongestSeconds);
  if (base.caption.empty()) base.caption = asked.caption;
  return base;
}

}  // namespace hocket
