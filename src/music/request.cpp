#include "music/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "audio/write.h"
#include "base/json.h"
#include "music/solvers/solver.h"
#include "music/solvers/wavelet.h"

namespace hocket {
namespace {

constexpr int kMostSteps = 1'000'000;  // more than 100 become 100
constexpr std::array<std::string_view, 7> kTasks{"text2music", "cover",   "cover-nofsq", "repaint",
                                                 "lego",       "extract", "complete"};
constexpr std::array<std::string_view, 3> kModes{"generate", "inspire", "format"};

// Every field once: its name, where it is, whether it is always written, whether "" leaves it alone. The order is that
// of the written object.
template <class Request, class Visit>
void visit_fields(Request& r, const Visit& visit) {
  constexpr bool kAlways = true, kNotEmpty = true;
  visit("caption", r.caption, kAlways, !kNotEmpty);
  visit("seed", r.seed, kAlways, !kNotEmpty);
  visit("lyrics", r.lyrics, !kAlways, !kNotEmpty);
  visit("audio_codes", r.audio_codes, !kAlways, !kNotEmpty);
  visit("bpm", r.bpm, !kAlways, !kNotEmpty);
  visit("duration", r.duration, !kAlways, !kNotEmpty);
  visit("keyscale", r.keyscale, !kAlways, !kNotEmpty);
  visit("timesignature", r.timesignature, !kAlways, !kNotEmpty);
  visit("vocal_language", r.vocal_language, !kAlways, !kNotEmpty);
  visit("lm_batch_size", r.lm_batch_size, !kAlways, !kNotEmpty);
  visit("lm_temperature", r.lm_temperature, !kAlways, !kNotEmpty);
  visit("lm_cfg_scale", r.lm_cfg_scale, !kAlways, !kNotEmpty);
  visit("lm_top_p", r.lm_top_p, !kAlways, !kNotEmpty);
  visit("lm_top_k", r.lm_top_k, !kAlways, !kNotEmpty);
  visit("lm_negative_prompt", r.lm_negative_prompt, !kAlways, !kNotEmpty);
  visit("lm_seed", r.lm_seed, !kAlways, !kNotEmpty);
  visit("use_cot_caption", r.use_cot_caption, !kAlways, !kNotEmpty);
  visit("lm_exact_duration", r.lm_exact_duration, !kAlways, !kNotEmpty);
  visit("lm_force_think", r.lm_force_think, !kAlways, !kNotEmpty);
  visit("inference_steps", r.inference_steps, !kAlways, !kNotEmpty);
  visit("guidance_scale", r.guidance_scale, !kAlways, !kNotEmpty);
  visit("shift", r.shift, !kAlways, !kNotEmpty);
  visit("dcw_scaler", r.dcw_scaler, !kAlways, !kNotEmpty);
  visit("dcw_high_scaler", r.dcw_high_scaler, !kAlways, !kNotEmpty);
  visit("dcw_mode", r.dcw_mode, !kAlways, !kNotEmpty);
  visit("solver", r.solver, kAlways, kNotEmpty);
  visit("stork_substeps", r.stork_substeps, !kAlways, !kNotEmpty);
  visit("lm_mode", r.lm_mode, kAlways, kNotEmpty);
  visit("output_format", r.output_format, kAlways, kNotEmpty);
  visit("synth_batch_size", r.synth_batch_size, !kAlways, !kNotEmpty);
  visit("audio_cover_strength", r.audio_cover_strength, !kAlways, !kNotEmpty);
  visit("cover_noise_strength", r.cover_noise_strength, !kAlways, !kNotEmpty);
  visit("repainting_start", r.repainting_start, !kAlways, !kNotEmpty);
  visit("repainting_end", r.repainting_end, !kAlways, !kNotEmpty);
  visit("latent_shift", r.latent_shift, !kAlways, !kNotEmpty);
  visit("latent_rescale", r.latent_rescale, !kAlways, !kNotEmpty);
  visit("custom_timesteps", r.custom_timesteps, !kAlways, !kNotEmpty);
  visit("task_type", r.task_type, kAlways, kNotEmpty);
  visit("track", r.track, !kAlways, !kNotEmpty);
  visit("peak_clip", r.peak_clip, !kAlways, !kNotEmpty);
  visit("mp3_bitrate", r.mp3_bitrate, !kAlways, !kNotEmpty);
  visit("synth_model", r.synth_model, !kAlways, !kNotEmpty);
  visit("lm_model", r.lm_model, !kAlways, !kNotEmpty);
  visit("adapter", r.adapter, !kAlways, !kNotEmpty);
  visit("adapter_scale", r.adapter_scale, !kAlways, !kNotEmpty);
  visit("vae", r.vae, !kAlways, !kNotEmpty);
}

// Truncates towards zero; what does not fit becomes the nearest that does, which check() then refuses.
template <class Integer>
Integer to_integer(const Json& value) {
  constexpr auto kMin = std::numeric_limits<Integer>::min(), kMax = std::numeric_limits<Integer>::max();
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMax)) return kMax;
  if (value.is_number_integer()) return static_cast<Integer>(std::clamp<int64_t>(value.get<int64_t>(), kMin, kMax));
  const double number = std::trunc(value.get<double>());
  if (number >= static_cast<double>(kMax)) return kMax;
  if (number <= static_cast<double>(kMin)) return kMin;
  return static_cast<Integer>(number);
}

struct ReadField {
  const Json& object;

  const Json* find(const char* name) const {
    const auto at = object.find(name);
    return at == object.end() ? nullptr : &*at;
  }
  void operator()(const char* name, std::string& out, bool, bool not_empty) const {
    const Json* value = find(name);
    if (!value || !value->is_string()) return;
    const auto& text = value->get_ref<const std::string&>();
    if (!not_empty || !text.empty()) out = text;
  }
  void operator()(const char* name, bool& out, bool, bool) const {
    const Json* value = find(name);
    if (!value) return;
    if (value->is_boolean()) out = value->get<bool>();
    if (value->is_string()) out = *value == "true" || *value == "1";
  }
  void operator()(const char* name, float& out, bool, bool) const {
    const Json* value = find(name);
    if (value && value->is_number()) out = static_cast<float>(value->get<double>());
  }
  template <class Integer>
  void operator()(const char* name, Integer& out, bool, bool) const {
    const Json* value = find(name);
    if (!value || !value->is_number()) return;
    // The one field that other clients refuse to read from a real number.
    if (std::string_view(name) == "stork_substeps" && !value->is_number_integer()) return;
    out = to_integer<Integer>(*value);
  }
};

Result<MusicRequest> from_object(const Json& object, const MusicRequest& defaults) {
  if (!object.is_object()) return Error(ErrorCode::kInvalid, "Invalid JSON");
  MusicRequest request = defaults;
  visit_fields(request, ReadField{object});
  if (request.lyrics == kInstrumental) request.vocal_language = "unknown";
  return request;
}

// The shortest decimal that reads back as this float, instead of the seventeen digits of a double.
Json shortest(float value) {
  return Json(std::strtod(fmt::format("{}", value).c_str(), nullptr));
}

struct CheckField {
  Result<void>& status;
  void operator()(const char* name, const float& value, bool, bool) const {
    if (status.ok() && !std::isfinite(value))
      status = Error(ErrorCode::kInvalid, fmt::format("{} is not finite", name), name);
  }
  template <class T>
  void operator()(const char*, const T&, bool, bool) const {}
};

}  // namespace

Result<MusicRequest> parse_music_request(std::string_view json, const MusicRequest& defaults) {
  const auto parsed = parse_json(json);
  if (!parsed.ok()) return Error(ErrorCode::kInvalid, "Invalid JSON: " + parsed.error().message);
  return from_object(*parsed, defaults);
}

Result<std::vector<MusicRequest>> parse_music_requests(std::string_view json, const MusicRequest& defaults) {
  const auto parsed = parse_json(json);
  if (!parsed.ok()) return Error(ErrorCode::kInvalid, "Invalid JSON: " + parsed.error().message);
  std::vector<MusicRequest> requests;
  if (!parsed->is_array()) {
    TRY_ASSIGN(MusicRequest request, from_object(*parsed, defaults));
    requests.push_back(std::move(request));
    return requests;
  }
  for (const Json& item : *parsed) {
    TRY_ASSIGN(MusicRequest request, from_object(item, defaults));
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return Error(ErrorCode::kInvalid, "Invalid JSON: the array is empty");
  return requests;
}

namespace {

Json request_object(const MusicRequest& request, MusicFields fields) {
  Json object = Json::object();
  const MusicRequest defaults;

  Json standard = Json::object();
  visit_fields(defaults, [&](const char* name, const auto& value, bool, bool) { standard[name] = value; });
  visit_fields(request, [&](const char* name, const auto& value, bool always, bool) {
    if (fields == MusicFields::kSparse && !always && standard[name] == Json(value)) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, float>) {
      object[name] = shortest(value);
    } else {
      object[name] = value;
    }
  });
  return object;
}

}  // namespace

std::string music_request_json(const MusicRequest& request, MusicFields fields) {
  return dump_json(request_object(request, fields), 2);
}

std::string music_requests_json(const std::vector<MusicRequest>& requests) {
  Json array = Json::array();
  for (const MusicRequest& request : requests) array.push_back(request_object(request, MusicFields::kSparse));
  return dump_json(array, 2);
}

std::vector<int64_t> parse_audio_codes(std::string_view text) {
  std::vector<int64_t> codes;
  const std::string owned(text);
  const char* at = owned.c_str();
  for (;;) {
    while (*at == ',' || *at == ' ') ++at;
    char* end = nullptr;
    const long long value = std::strtoll(at, &end, 10);
    if (end == at) return codes;
    codes.push_back(value);
    at = end;
  }
}

std::string audio_codes_text(const std::vector<int32_t>& codes) {
  return fmt::format("{}", fmt::join(codes, ","));
}

Result<void> MusicRequest::check() const {
  const auto refuse = [](const char* field, const std::string& why) {
    return Error(ErrorCode::kInvalid, fmt::format("{} {}", field, why), field);
  };
  Result<void> finite;
  visit_fields(*this, CheckField{finite});
  TRY(finite);
  if (duration < 0 || duration > kLongestSeconds) return refuse("duration", "must be 0 to 600 seconds");
  if (bpm < 0) return refuse("bpm", "must not be negative");
  if (lm_batch_size < 1) return refuse("lm_batch_size", "must be at least 1");
  if (synth_batch_size < 1 || synth_batch_size > 9) return refuse("synth_batch_size", "must be 1 to 9");
  if (lm_top_k < 0) return refuse("lm_top_k", "must not be negative");
  if (inference_steps < 0 || inference_steps > kMostSteps) return refuse("inference_steps", "must be 0 to 100");
  if (stork_substeps < 2) return refuse("stork_substeps", "must be at least 2");
  if (peak_clip < 0 || peak_clip > 999) return refuse("peak_clip", "must be 0 to 999");
  if (audio_cover_strength < 0 || audio_cover_strength > 1) return refuse("audio_cover_strength", "must be 0 to 1");
  if (cover_noise_strength < 0 || cover_noise_strength > 1) return refuse("cover_noise_strength", "must be 0 to 1");
  if (std::abs(repainting_start) > kLongestSeconds) return refuse("repainting_start", "must be within 600 seconds");
  if (repainting_end > 2 * kLongestSeconds) return refuse("repainting_end", "must be at most 1200 seconds");
  const int64_t last_seed = std::numeric_limits<uint32_t>::max();
  if (seed > last_seed) return refuse("seed", "must be below 2^32");
  if (lm_seed > last_seed) return refuse("lm_seed", "must be below 2^32");
  if (!parse_solver(solver)) return refuse("solver", "must be one of euler, sde, dpm3m, stork4");
  if (!parse_wavelet_mode(dcw_mode)) return refuse("dcw_mode", "must be one of low, high, double, pix");
  if (!parse_audio_format(output_format))
    return refuse("output_format", "must be one of mp3, wav16, wav24, wav32, flac");
  if (std::find(kTasks.begin(), kTasks.end(), task_type) == kTasks.end())
    return refuse("task_type", fmt::format("must be one of {}", fmt::join(kTasks, ", ")));
  if (std::find(kModes.begin(), kModes.end(), lm_mode) == kModes.end())
    return refuse("lm_mode", fmt::format("must be one of {}", fmt::join(kModes, ", ")));
  const auto bitrates = mp3_bitrates_kbps();
  if (std::find(bitrates.begin(), bitrates.end(), mp3_bitrate) == bitrates.end())
    return refuse("mp3_bitrate", fmt::format("must be one of {}", fmt::join(bitrates, ", ")));
  for (const int64_t code : parse_audio_codes(audio_codes))
    if (code < 0 || code > kLastAudioCode)
      return refuse("audio_codes", fmt::format("holds {}; codes are 0 to {}", code, kLastAudioCode));
  return {};
}

}  // namespace hocket
