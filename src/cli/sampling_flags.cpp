#include "cli/sampling_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "engine/sampling_defaults.h"

namespace hocket {
namespace {

template <class T>
using Member = std::optional<T> GenerationParams::*;

struct Setting {
  const char* flag;
  const char* field;  // in requests and errors
  const char* text;
  std::variant<Member<float>, Member<int>, Member<int64_t>> member;
};

using P = GenerationParams;
const Setting kSettings[] = {
    {"-s,--seed", "seed", "seed; -1 for a new one each time", &P::seed},
    {"--temp,--temperature", "temperature", "temperature; 0 takes the most probable token", &P::temperature},
    {"--dynatemp-range", "dynatemp_range", "the temperature varies by this much with the entropy; 0 is off",
     &P::dynatemp_range},
    {"--dynatemp-exp", "dynatemp_exponent", "exponent of the entropy for --dynatemp-range", &P::dynatemp_exponent},
    {"--top-k", "top_k", "keep the k most probable tokens; 0 keeps all", &P::top_k},
    {"--top-p", "top_p", "keep the most probable tokens up to this sum", &P::top_p},
    {"--min-p", "min_p", "drop tokens below this part of the best one", &P::min_p},
    {"--typical", "typical_p", "locally typical sampling; 1 is off", &P::typical_p},
    {"--top-n-sigma", "top_n_sigma", "keep logits within n standard deviations of the best", &P::top_n_sigma},
    {"--xtc-probability", "xtc_probability", "how often the most probable tokens are excluded", &P::xtc_probability},
    {"--xtc-threshold", "xtc_threshold", "from which probability on tokens may be excluded", &P::xtc_threshold},
    {"--repeat-penalty", "repeat_penalty", "penalty on tokens that were seen; 1 is off", &P::repeat_penalty},
    {"--repeat-last-n", "repeat_last_n", "how far penalties look back; -1 is the context", &P::repeat_last_n},
    {"--presence-penalty", "presence_penalty", "penalty on tokens that were seen at all", &P::presence_penalty},
    {"--frequency-penalty", "frequency_penalty", "penalty on tokens for each time they were seen",
     &P::frequency_penalty},
    {"--dry-multiplier", "dry_multiplier", "strength of the penalty on repeated runs; 0 is off", &P::dry_multiplier},
    {"--dry-base", "dry_base", "base of that penalty's growth with the length of the run", &P::dry_base},
    {"--dry-allowed-length", "dry_allowed_length", "longest run without that penalty", &P::dry_allowed_length},
    {"--dry-penalty-last-n", "dry_penalty_last_n", "how far it looks back; -1 is the context", &P::dry_penalty_last_n},
    {"--mirostat", "mirostat", "0 off, 1 or 2: version of mirostat", &P::mirostat},
    {"--mirostat-ent", "mirostat_tau", "mirostat's target entropy", &P::mirostat_tau},
    {"--mirostat-lr", "mirostat_eta", "mirostat's learning rate", &P::mirostat_eta},
};
constexpr const char* kPredict = "--predict";

// The first long name: "--temp".
std::string long_flag(const Setting& setting) {
  std::string_view flag = setting.flag;
  flag.remove_prefix(flag.find("--"));
  return std::string(flag.substr(0, flag.find(',')));
}

bool has_name(const Setting& setting, std::string_view name) {
  if (name == setting.field) return true;
  for (const std::string& flag : CLI::detail::split(setting.flag, ',')) {
    if (flag.size() > 2 && flag.compare(2, std::string::npos, name) == 0) return true;
  }
  return false;
}

template <class T>
bool parse(std::string_view text, std::optional<T>& target) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return false;
  target = value;
  return true;
}

// −1 (llama.cpp also has −2) is "to the end of the context".
CLI::Validator token_limit() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        std::optional<int64_t> n;
        if (parse(text, n) && (*n > 0 || *n == -1 || *n == -2)) return {};
        return fmt::format("\"{}\" is not a number of tokens of at least 1, or -1", text);
      },
      "TOKENS");
}

}  // namespace

void add_sampling_flags(CLI::App& app, GenerationParams& params) {
  const std::string group = "Sampling";
  app.add_option_function<int64_t>(
         std::string("-n,") + kPredict,
         [&params](const int64_t& n) { params.max_tokens = n < 0 ? std::nullopt : std::optional<int64_t>(n); },
         "most tokens of an answer; -1: to the end of the context (default)")
      ->check(token_limit())
      ->group(group);
  for (const Setting& setting : kSettings) {
    std::visit([&](auto member) { app.add_option(setting.flag, params.*member, setting.text)->group(group); },
               setting.member);
  }
}

Result<void> check_sampling_flags(const GenerationParams& params) {
  auto checked = check_ranges(params);
  if (checked) return {};
  Error error = checked.error();
  for (const Setting& setting : kSettings) {
    if (error.param != setting.field) continue;
    error.param = long_flag(setting);
    error.message = error.param + ": " + error.message;
    break;
  }
  return error;
}

Result<void> set_sampling(GenerationParams& params, std::string_view name, std::string_view value) {
  const bool forget = value == "default";
  GenerationParams changed = params;
  if (name == "predict" || name == "n" || name == "max_tokens") {
    std::optional<int64_t> n;
    if (!forget && (!parse(value, n) || *n == 0 || *n < -2)) {
      return Error(ErrorCode::kInvalid, fmt::format("{} must be a number of tokens, or -1", name), kPredict);
    }
    params.max_tokens = n && *n > 0 ? n : std::nullopt;
    return {};
  }
  for (const Setting& setting : kSettings) {
    if (!has_name(setting, name)) continue;
    const bool understood = std::visit(
        [&](auto member) {
          (changed.*member).reset();
          return forget || parse(value, changed.*member);
        },
        setting.member);
    if (!understood) {
      return Error(ErrorCode::kInvalid, fmt::format("\"{}\" is no value for {}", value, setting.field),
                   long_flag(setting));
    }
    TRY(check_ranges(changed));
    params = std::move(changed);
    return {};
  }
  return Error(ErrorCode::kInvalid, fmt::format("there is no setting \"{}\"; there are: {}", name, sampling_names()));
}

std::string describe_sampling(const GenerationParams& params) {
  std::string out;
  const auto add = [&](std::string_view name, const auto& value) {
    if (value) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, *value);
  };
  add("max_tokens", params.max_tokens);
  for (const Setting& setting : kSettings) {
    std::visit([&](auto member) { add(setting.field, params.*member); }, setting.member);
  }
  return out;
}

Json sampling_fields(const GenerationParams& params) {
  Json fields = Json::object();
  const auto add = [&](const char* name, const auto& value) {
    if (value) fields[name] = *value;
  };
  add("max_tokens", params.max_tokens);
  for (const Setting& setting : kSettings) {
    std::visit([&](auto member) { add(setting.field, params.*member); }, setting.member);
  }
  return fields;
}

std::string sampling_names() {
  std::string out = "max_tokens";
  for (const Setting& setting : kSettings) out += std::string(" ") + setting.field;
  return out;
}

}  // namespace hocket
