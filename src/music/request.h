// music/request.h: what a song is asked for with: the one state that passes between the steps of making music.
//
// A field at its default means "fill it in", another value "keep it". What compose writes, synth reads unchanged.
//
// Threads  plain values.
// Errors   parse: kInvalid "Invalid JSON" for what is no object; keys that are unknown or have the wrong type are
//          ignored, as clients of this format expect. check(): kInvalid naming the field that is out of range.
// Source   ace-step.md §9.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

struct MusicRequest {
  std::string caption;
  int64_t seed = -1;  // negative: random
  std::string lyrics;
  std::string audio_codes;
  int bpm = 0;
  float duration = 0;  // seconds
  std::string keyscale, timesignature, vocal_language;
  int lm_batch_size = 1;
  float lm_temperature = 0.85f, lm_cfg_scale = 2.0f, lm_top_p = 0.9f;
  int lm_top_k = 0;
  std::string lm_negative_prompt;
  int64_t lm_seed = -1;
  bool use_cot_caption = true;
  bool lm_exact_duration = false;  // as many codes as `duration` asks for, not as many as the model likes
  bool lm_force_think = false;     // metadata begin with the "<think>" of the training, as other tools never write it
  int inference_steps = 0;
  float guidance_scale = 0, shift = 0, dcw_scaler = 0, dcw_high_scaler = 0;
  std::string dcw_mode = "low", solver = "euler";
  int stork_substeps = 10;
  std::string lm_mode = "generate", output_format = "mp3";
  int synth_batch_size = 1;
  float audio_cover_strength = 1, cover_noise_strength = 0, repainting_start = 0, repainting_end = -1;
  float latent_shift = 0, latent_rescale = 1;
  std::string custom_timesteps, task_type = "text2music", track;
  int peak_clip = 10, mp3_bitrate = 128;
  std::string synth_model, lm_model, adapter;
  float adapter_scale = 1;
  std::string vae;

  // Values out of range, names that do not exist.
  Result<void> check() const;
  bool operator==(const MusicRequest&) const = default;
};

// One JSON object; fields that it does not mention keep the values of `defaults`.
Result<MusicRequest> parse_music_request(std::string_view json, const MusicRequest& defaults = {});
// An object, or an array of them with at least one.
Result<std::vector<MusicRequest>> parse_music_requests(std::string_view json, const MusicRequest& defaults = {});

// A JSON object: some fields always, the others only where they differ from the default (or all of them). Numbers
// survive the way back.
enum class MusicFields { kSparse, kAll };
std::string music_request_json(const MusicRequest& request, MusicFields fields = MusicFields::kSparse);
// An array of them.
std::string music_requests_json(const std::vector<MusicRequest>& requests);

// "12,345": numbers separated by commas or spaces, up to the first item that is none.
std::vector<int64_t> parse_audio_codes(std::string_view text);
std::string audio_codes_text(const std::vector<int32_t>& codes);

// The largest code that a language model can write; codes from 64 000 on repeat the first ones.
inline constexpr int64_t kLastAudioCode = 65'534;
inline constexpr float kLongestSeconds = 600;
inline constexpr std::string_view kInstrumental = "[Instrumental]";

}  // namespace hocket
