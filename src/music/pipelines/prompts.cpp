#include "music/pipelines/prompts.h"

#include <fmt/format.h>

namespace hocket {
namespace {

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string or_unknown(const std::string& value) {
  return value.empty() ? "N/A" : value;
}

}  // namespace

std::string task_instruction(const std::string& task, const std::string& track, bool with_codes) {
  const std::string name = upper(track);
  if (task == "repaint") return "Repaint the mask area based on the given conditions:";
  if (task == "lego")
    return name.empty() ? "Generate the track based on the audio context:"
                        : fmt::format("Generate the {} track based on the audio context:", name);
  if (task == "extract")
    return name.empty() ? "Extract the track from the audio:"
                        : fmt::format("Extract the {} track from the audio:", name);
  if (task == "complete")
    return name.empty() ? "Complete the input track:" : fmt::format("Complete the input track with {}:", name);
  if (task == "text2music" && !with_codes) return "Fill the audio semantic mask based on the given conditions:";
  return "Generate audio semantic tokens based on the given conditions:";
}

std::string text_prompt(const MusicRequest& request, const std::string& instruction, float duration_s) {
  return fmt::format(
      "# Instruction\n{}\n\n# Caption\n{}\n\n# Metas\n- bpm: {}\n- timesignature: {}\n- keyscale: {}\n"
      "- duration: {} seconds\n<|endoftext|>\n",
      instruction, request.caption, request.bpm > 0 ? std::to_string(request.bpm) : "N/A",
      or_unknown(request.timesignature), or_unknown(request.keyscale), static_cast<int>(duration_s));
}

std::string lyric_prompt(const MusicRequest& request) {
  return fmt::format("# Languages\n{}\n\n# Lyric\n{}<|endoftext|>",
                     request.vocal_language.empty() ? "unknown" : request.vocal_language, request.lyrics);
}

}  // namespace hocket
