// music/planner/planner_prompts.h: the prompts of the planning language model, as token ids.
//
// Threads  pure functions.
// Errors   those of the tokenizer.
// Source   ace-step.md §6.1.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "music/request.h"
#include "music/tokens.h"

namespace hocket {

using TokenIds = std::vector<TokenId>;

// Metadata wanted, lyrics given.
Result<TokenIds> fill_prompt(const MusicTokenizer& tokenizer, const std::string& caption, const std::string& lyrics);
// What guidance pushes away from in the same: the negative prompt instead of the caption, or no caption.
Result<TokenIds> fill_unconditional_prompt(const MusicTokenizer& tokenizer, const std::string& negative,
                                           const std::string& lyrics);
// Everything wanted from a short description.
Result<TokenIds> inspire_prompt(const MusicTokenizer& tokenizer, const std::string& caption, const std::string& lyrics);
// Caption and lyrics to be put in form.
Result<TokenIds> format_prompt(const MusicTokenizer& tokenizer, const std::string& caption, const std::string& lyrics);
// A prompt for metadata after which the model thinks already: "<think>\n", as it was trained.
Result<TokenIds> with_thinking(const MusicTokenizer& tokenizer, TokenIds prompt);
// Audio codes wanted, metadata as if the model had thought them.
Result<TokenIds> codes_prompt(const MusicTokenizer& tokenizer, const MusicRequest& request);
Result<TokenIds> codes_unconditional_prompt(const MusicTokenizer& tokenizer, const std::string& negative);
// Metadata and lyrics wanted from audio codes.
Result<TokenIds> understand_prompt(const MusicTokenizer& tokenizer, std::span<const int32_t> codes);

// "bpm: 90\ncaption: …\n": the fields that a request sets, captions broken at 80 columns.
std::string metadata_yaml(const MusicRequest& request);

}  // namespace hocket
