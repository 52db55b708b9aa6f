// music/pipelines/prompts.h: the texts that condition the diffusion transformer.
//
// Threads  pure functions.
// Source   ace-step.md §§7.1, 7.5, Appendix C.
#pragma once

#include <string>

#include "music/request.h"

namespace hocket {

// What a task is called in the prompt; `with_codes`: text2music that has audio codes.
std::string task_instruction(const std::string& task, const std::string& track, bool with_codes);

// Without the end token that is appended when it is encoded.
std::string text_prompt(const MusicRequest& request, const std::string& instruction, float duration_s);
std::string lyric_prompt(const MusicRequest& request);

}  // namespace hocket
