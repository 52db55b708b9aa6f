#include "music/pipelines/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "music/pipelines/track_batch.h"
#include "music/planner/answer.h"
#include "music/planner/planner_run.h"
#include "music/planner/token_draw.h"

namespace hocket {
namespace {

constexpr std::size_t kMostMetadataTokens = 2048;
constexpr int kMostVariations = 9;
constexpr float kCodesPerSecond = 5;
constexpr std::size_t kSpareCodes = 100;
constexpr float kImpossible = -1e9f;  // a logit

// A song on its way through the phases.
struct Variation {
  MusicRequest asked;   // with resolved seeds
  MusicRequest merged;  // after phase 1
  std::vector<int32_t> codes;
};

DrawOptions draw_options(const MusicRequest& request) {
  return {request.lm_temperature, request.lm_top_p, request.lm_top_k};
}

std::vector<Variation> expand(const std::vector<MusicRequest>& requests) {
  std::vector<Variation> variations;
  for (const MusicRequest& request : requests) {
    MusicRequest one = request;
    one.lm_batch_size = 1;
    const int64_t seed = resolve_seed(request.seed), lm_seed = resolve_seed(request.lm_seed);
    const int n = requests.size() == 1 ? request.lm_batch_size : 1;
    for (int i = 0; i < n; ++i) {
      one.seed = (seed + i) & 0xFFFFFFFF;
      one.lm_seed = (lm_seed + i) & 0xFFFFFFFF;
      variations.push_back({one, one, {}});
    }
  }
  return variations;
}

// The prompt that metadata follow, and the one that guidance pushes away from, empty without guidance.
struct MetadataPrompts {
  TokenIds prompt, unconditional;
};

Result<TokenIds> bare_metadata_prompt(const MusicTokenizer& tokenizer, const MusicRequest& request,
                                      const ComposePlan& plan) {
  switch (plan.prompt) {
    case ComposePlan::Prompt::kInspire:
      return inspire_prompt(tokenizer, request.caption, request.lyrics);
    case ComposePlan::Prompt::kFormat:
      return format_prompt(tokenizer, request.caption, request.lyrics);
    case ComposePlan::Prompt::kFill:
      break;
  }
  return fill_prompt(tokenizer, request.caption, request.lyrics);
}

Result<MetadataPrompts> metadata_prompts(const MusicTokenizer& tokenizer, const MusicRequest& request,
                                         const ComposePlan& plan) {
  MetadataPrompts prompts;
  TRY_ASSIGN(prompts.prompt, bare_metadata_prompt(tokenizer, request, plan));
  if (plan.guidance > 1) {
    TRY_ASSIGN(prompts.unconditional, fill_unconditional_prompt(tokenizer, request.lm_negative_prompt, request.lyrics));
  }
  for (TokenIds* prompt : {&prompts.prompt, &prompts.unconditional}) {
    if (!request.lm_force_think || prompt->empty()) continue;
    TRY_ASSIGN(*prompt, with_thinking(tokenizer, std::move(*prompt)));
  }
  return prompts;
}

// Runs one group of variations that share guidance and go on alike.
class Phase {
 public:
  Phase(const PlannerModel& planner, const CancelToken& cancel) : planner_(planner), cancel_(cancel) {}

  // pick(i, logits) draws the token of sequence i, or kNoToken when it has ended.
  template <class Pick>
  Result<void> run(const PlannerPrompts& prompts, const Pick& pick, const std::function<void(std::size_t)>& report) {
    TRY_ASSIGN(const auto session, PlannerRun::start(planner_, prompts, cancel_));
    std::vector<bool> ended(prompts.conditional.size(), false);
    for (std::size_t step = 0; step <= prompts.max_steps; ++step) {
      if (cancel_.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
      std::vector<PlannerRun::Next> next;
      for (std::size_t i = 0; i < ended.size(); ++i) {
        if (ended[i]) continue;
        const TokenId token = pick(i, session->logits(i));
        ended[i] = token == kNoToken;
        if (!ended[i]) next.push_back({i, token});
      }
      if (report) report(step + 1);
      if (next.empty() || step == prompts.max_steps) break;
      TRY(session->step(next, cancel_));
    }
    return {};
  }

 private:
  const PlannerModel& planner_;
  const CancelToken& cancel_;
};

// Phase 1 of one group. Sequences of a group have the same guidance.
Result<void> run_metadata(const PlannerModel& planner, std::vector<Variation*> group, const ComposePlan& plan,
                          const MusicProgressFunction& progress, const CancelToken& cancel,
                          std::vector<TokenIds>& tokens) {
  const MusicTokenizer& tokenizer = planner.tokenizer();
  PlannerPrompts prompts;
  prompts.guidance = plan.guidance;
  prompts.max_steps = kMostMetadataTokens;
  std::vector<TokenDraw> draws;
  std::vector<MetadataMachine> machines;
  for (const Variation* variation : group) {
    const MusicRequest& asked = variation->asked;
    TRY_ASSIGN(MetadataPrompts own, metadata_prompts(tokenizer, asked, plan));
    prompts.conditional.push_back(std::move(own.prompt));
    if (plan.guidance > 1) prompts.unconditional.push_back(std::move(own.unconditional));
    draws.emplace_back(static_cast<uint32_t>(asked.lm_seed));
    TRY_ASSIGN(MetadataMachine machine,
               MetadataMachine::start(planner.shared_rules(), ForcedMetadata::of(asked, plan.skip_caption)));
    machines.push_back(std::move(machine));
  }
  tokens.assign(group.size(), {});
  std::vector<bool> thought(group.size(), false);
  const auto pick = [&](std::size_t i, std::vector<float>& logits) -> TokenId {
    if (thought[i] && !plan.writes_lyrics) return kNoToken;
    if (!thought[i]) machines[i].mask(logits);
    const auto token = static_cast<TokenId>(draws[i].draw(logits, draw_options(group[i]->asked)));
    if (token == kTurnEnd) return kNoToken;
    tokens[i].push_back(token);
    if (!thought[i]) machines[i].accept(token);
    thought[i] = thought[i] || token == kEndThink;
    return thought[i] && !plan.writes_lyrics ? kNoToken : token;
  };
  TRY(Phase(planner, cancel).run(prompts, pick, [&](std::size_t n) {
    if (progress) progress({"metadata", n, 0});
  }));

  const bool inspire = group.front()->asked.lm_mode == "inspire";
  for (std::size_t i = 0; i < group.size(); ++i) {
    const MusicRequest& asked = group[i]->asked;
    MusicRequest base = asked;
    if (inspire) {
      base.caption = base.lyrics = base.keyscale = base.timesignature = base.vocal_language = "";
      base.bpm = 0;
      base.duration = 0;
    }
    group[i]->merged = merge_answer(base, parse_answer(tokenizer.decode(tokens[i])),
                                    {asked.use_cot_caption || inspire, plan.writes_lyrics}, asked);
  }
  return {};
}

// Phase 2 of variations with the same guidance.
Result<void> run_codes(const PlannerModel& planner, std::vector<Variation*> group,
                       const MusicProgressFunction& progress, const CancelToken& cancel) {
  const MusicTokenizer& tokenizer = planner.tokenizer();
  PlannerPrompts prompts;
  prompts.guidance = group.front()->asked.lm_cfg_scale;
  const auto codes_of = [](const Variation& variation) {
    return static_cast<std::size_t>(variation.merged.duration * kCodesPerSecond);
  };
  std::vector<TokenDraw> draws;
  std::size_t expected = 0;
  for (const Variation* variation : group) {
    TRY_ASSIGN(TokenIds prompt, codes_prompt(tokenizer, variation->merged));
    prompts.conditional.push_back(std::move(prompt));
    if (prompts.guidance > 1) {
      TRY_ASSIGN(TokenIds without, codes_unconditional_prompt(tokenizer, variation->asked.lm_negative_prompt));
      prompts.unconditional.push_back(std::move(without));
    }
    draws.emplace_back(static_cast<uint32_t>(variation->asked.lm_seed));
    expected = std::max(expected, codes_of(*variation));
  }
  prompts.max_steps = expected + kSpareCodes;
  prompts.first_token = kTurnEnd;  // the codes come after it
  const std::size_t n_vocab = planner.model().n_vocab();
  const std::size_t n_codes = std::min<std::size_t>(kAudioCodeIds, n_vocab - kFirstAudioCode);
  std::vector<bool> begun(group.size(), false);
  std::vector<float> few;
  const auto pick = [&](std::size_t i, std::vector<float>& logits) -> TokenId {
    const DrawOptions options = draw_options(group[i]->asked);
    const std::size_t n_exact = group[i]->asked.lm_exact_duration ? codes_of(*group[i]) : 0;
    if (n_exact > 0) {
      if (group[i]->codes.size() == n_exact) return kNoToken;
      logits[kTurnEnd] = kImpossible;
      std::fill(logits.begin() + kFirstAudioCode + static_cast<std::ptrdiff_t>(n_codes), logits.end(), kImpossible);
    }
    TokenId token = kNoToken;
    if (!begun[i]) {
      // Over the whole vocabulary, of which only the end and the codes are possible.
      for (std::size_t id = 0; id < static_cast<std::size_t>(kFirstAudioCode); ++id)
        if (id != static_cast<std::size_t>(kTurnEnd)) logits[id] = kImpossible;
      token = static_cast<TokenId>(draws[i].draw(logits, options));
      begun[i] = true;
    } else {
      few.assign(1, logits[kTurnEnd]);
      few.insert(few.end(), logits.begin() + kFirstAudioCode,
                 logits.begin() + kFirstAudioCode + static_cast<std::ptrdiff_t>(n_codes));
      const std::size_t at = draws[i].draw(few, options);
      token = at == 0 ? kTurnEnd : kFirstAudioCode + static_cast<TokenId>(at - 1);
    }
    const int64_t code = static_cast<int64_t>(token) - kFirstAudioCode;
    if (code < 0 || code >= kAudioCodeIds) return kNoToken;
    group[i]->codes.push_back(static_cast<int32_t>(code));
    return token;
  };
  return Phase(planner, cancel).run(prompts, pick, [&](std::size_t n) {
    if (progress) progress({"codes", std::min(n, expected), expected});
  });
}

// Variations in groups of equal keys, in order of their first.
template <class Key>
std::vector<std::vector<std::size_t>> grouped(const std::vector<std::size_t>& items, const Key& key) {
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t item : items) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return key(g[0]) == key(item); });
    if (group == groups.end()) {
      groups.push_back({item});
    } else {
      group->push_back(item);
    }
  }
  return groups;
}

}  // namespace

ComposePlan plan_compose(const MusicRequest& request) {
  ComposePlan plan;
  const bool generate = request.lm_mode == "generate";
  if (generate && !request.audio_codes.empty()) return plan;
  const bool needs_lyrics = request.lyrics.empty();
  const bool complete =
      request.bpm > 0 && request.duration > 0 && !request.keyscale.empty() && !request.timesignature.empty();
  plan.metadata = !generate || needs_lyrics || !complete;
  plan.codes = generate;
  if (request.lm_mode == "format") {
    plan.prompt = ComposePlan::Prompt::kFormat;
  } else if (!generate || needs_lyrics) {
    plan.prompt = ComposePlan::Prompt::kInspire;
  }
  plan.writes_lyrics = needs_lyrics || !generate;
  plan.guidance = plan.writes_lyrics || request.use_cot_caption ? 1.0f : std::max(1.0f, request.lm_cfg_scale);
  plan.skip_caption = !request.use_cot_caption && request.lm_mode != "inspire";
  return plan;
}

Result<void> check_compose(const std::vector<MusicRequest>& requests) {
  if (requests.empty()) return Error(ErrorCode::kInvalid, "Empty request");
  for (const MusicRequest& request : requests) {
    if (request.caption.empty()) return Error(ErrorCode::kInvalid, "Caption is required", "caption");
    if (request.lm_mode != requests.front().lm_mode)
      return Error(ErrorCode::kInvalid, "Array items must share lm_mode and lm_model", "lm_mode");
    if (request.lm_model != requests.front().lm_model)
      return Error(ErrorCode::kInvalid, "Array items must share lm_mode and lm_model", "lm_model");
    TRY(request.check());
  }
  const std::size_t n = requests.size() == 1 ? static_cast<std::size_t>(requests[0].lm_batch_size) : requests.size();
  if (n > static_cast<std::size_t>(kMostVariations))
    return Error(ErrorCode::kInvalid, fmt::format("{} variations; at most {} at once", n, kMostVariations),
                 "lm_batch_size");
  return {};
}

Result<ComposeSize> compose_size(const MusicTokenizer& tokenizer, const std::vector<MusicRequest>& requests) {
  TRY(check_compose(requests));
  ComposeSize metadata, codes;
  const auto add = [](ComposeSize& size, const TokenIds& prompt, std::size_t n_answer) {
    size.n_seqs += 1;
    size.n_tokens += prompt.size() + n_answer;
  };
  for (const Variation& variation : expand(requests)) {
    const MusicRequest& asked = variation.asked;
    const ComposePlan plan = plan_compose(asked);
    std::size_t n_thought = 0;  // that the model may add to the prompt of the codes
    if (plan.metadata) {
      n_thought = kMostMetadataTokens;
      TRY_ASSIGN(const MetadataPrompts prompts, metadata_prompts(tokenizer, asked, plan));
      add(metadata, prompts.prompt, n_thought);
      if (plan.guidance > 1) add(metadata, prompts.unconditional, n_thought);
    }
    if (plan.codes) {
      const float seconds = asked.duration > 0 || !plan.metadata ? asked.duration : kLongestSeconds;
      const std::size_t n_answer = static_cast<std::size_t>(seconds * kCodesPerSecond) + kSpareCodes;
      TRY_ASSIGN(const TokenIds prompt, codes_prompt(tokenizer, asked));
      add(codes, prompt, n_thought + n_answer);
      if (asked.lm_cfg_scale > 1) {
        TRY_ASSIGN(const TokenIds without, codes_unconditional_prompt(tokenizer, asked.lm_negative_prompt));
        add(codes, without, n_answer);
      }
    }
  }
  return ComposeSize{std::max(metadata.n_seqs, codes.n_seqs), std::max(metadata.n_tokens, codes.n_tokens)};
}

Result<std::vector<MusicRequest>> compose(const PlannerModel& planner, const std::vector<MusicRequest>& requests,
                                          const MusicProgressFunction& progress, const CancelToken& cancel,
                                          ComposeTrace* trace) {
  TRY(check_compose(requests));
  std::vector<Variation> variations = expand(requests);
  std::vector<std::size_t> with_metadata, with_codes;
  for (std::size_t i = 0; i < variations.size(); ++i) {
    const ComposePlan plan = plan_compose(variations[i].asked);
    if (plan.metadata) with_metadata.push_back(i);
    if (plan.codes) with_codes.push_back(i);
  }
  if (trace) *trace = {std::vector<TokenIds>(variations.size()), {}};
  const auto members = [&](const std::vector<std::size_t>& group) {
    std::vector<Variation*> pointers;
    for (const std::size_t i : group) pointers.push_back(&variations[i]);
    return pointers;
  };

  const auto phase1_key = [&](std::size_t i) {
    const ComposePlan plan = plan_compose(variations[i].asked);
    return std::tuple(plan.prompt, plan.writes_lyrics, plan.guidance, plan.skip_caption);
  };
  for (const auto& group : grouped(with_metadata, phase1_key)) {
    std::vector<TokenIds> tokens;
    TRY(run_metadata(planner, members(group), plan_compose(variations[group[0]].asked), progress, cancel, tokens));
    for (std::size_t i = 0; trace && i < group.size(); ++i) trace->metadata_tokens[group[i]] = tokens[i];
  }
  for (const auto& group : grouped(with_codes, [&](std::size_t i) { return variations[i].asked.lm_cfg_scale; }))
    TRY(run_codes(planner, members(group), progress, cancel));

  std::vector<MusicRequest> results;
  for (Variation& variation : variations) {
    MusicRequest result = std::move(variation.merged);
    if (!variation.codes.empty()) result.audio_codes = audio_codes_text(variation.codes);
    if (variation.asked.lm_mode == "inspire") result.use_cot_caption = true;
    results.push_back(std::move(result));
    if (trace) trace->codes.push_back(std::move(variation.codes));
  }
  return results;
}

}  // namespace hocket
