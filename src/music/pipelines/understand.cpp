#include "music/pipelines/understand.h"

#include <limits>

#include "music/fsq/fsq_tokenizer.h"
#include "music/model_file.h"
#include "music/pipelines/track_batch.h"
#include "music/planner/answer.h"
#include "music/planner/planner_run.h"
#include "music/planner/token_draw.h"
#include "music/vae/vae_encoder.h"

namespace hocket {
namespace {

constexpr std::size_t kMostTokens = 4096;

}  // namespace

MusicRequest understand_defaults() {
  MusicRequest request;
  request.lm_temperature = 0.3f;
  request.lm_top_p = 1.0f;
  return request;
}

Result<HeardSong> hear(const std::shared_ptr<const DitFile>& dit, const std::string& vae_path, const SynthSound& sound,
                       const Tiling& tiling, const MusicCompute& compute, Residency& models,
                       const MusicProgressFunction& progress, const CancelToken& cancel) {
  HeardSong song;
  if (!sound.latent.empty()) {
    song.latent = sound.latent;
  } else if (sound.audio.n_samples() > 0) {
    TRY_ASSIGN(const auto file, open_music_file(vae_path, MusicFileKind::kVae));
    TRY_ASSIGN(const auto encoder,
               models.borrow<VaeEncoder>("VAE encoder " + vae_path, [&] { return VaeEncoder::load(file, compute); }));
    TRY_ASSIGN(song.latent, encoder->encode(sound.audio, tiling, cancel, [&](std::size_t done, std::size_t all) {
      if (progress) progress({"source", done, all});
    }));
  } else {
    return Error(ErrorCode::kInvalid, "understanding needs audio or a latent", "audio");
  }
  TRY_ASSIGN(const auto tokenizer, models.borrow<FsqTokenizer>("FSQ tokenizer " + dit->path(),
                                                               [&] { return FsqTokenizer::load(dit, compute); }));
  TRY_ASSIGN(song.codes, tokenizer->encode(song.latent, cancel));
  return song;
}

Result<std::size_t> understand_size(const MusicTokenizer& tokenizer, const std::vector<int32_t>& codes) {
  TRY_ASSIGN(const TokenIds prompt, understand_prompt(tokenizer, codes));
  return prompt.size() + kMostTokens;
}

Result<MusicRequest> understand(const PlannerModel& planner, const std::vector<int32_t>& codes,
                                const MusicRequest& request, const MusicProgressFunction& progress,
                                const CancelToken& cancel) {
  TRY(request.check());
  PlannerPrompts prompts;
  TRY_ASSIGN(TokenIds prompt, understand_prompt(planner.tokenizer(), codes));
  prompts.conditional.push_back(std::move(prompt));
  prompts.max_steps = kMostTokens;
  TRY_ASSIGN(const auto session, PlannerRun::start(planner, prompts, cancel));
  TRY_ASSIGN(MetadataMachine machine, MetadataMachine::start(planner.shared_rules(), {}));
  const int64_t lm_seed = resolve_seed(request.lm_seed);
  TokenDraw draw(static_cast<uint32_t>(lm_seed));
  const DrawOptions options{request.lm_temperature, request.lm_top_p, request.lm_top_k};

  TokenIds tokens;
  bool thought = false;
  while (tokens.size() < kMostTokens) {
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    std::vector<float>& logits = session->logits(0);
    if (thought) {
      for (auto id = static_cast<std::size_t>(kFirstAudioCode); id < logits.size(); ++id)
        logits[id] = -std::numeric_limits<float>::infinity();
    } else {
      machine.mask(logits);
    }
    const auto token = static_cast<TokenId>(draw.draw(logits, options));
    if (token == kTurnEnd) break;
    tokens.push_back(token);
    if (!thought) machine.accept(token);
    thought = thought || token == kEndThink;
    if (progress) progress({"words", tokens.size(), 0});
    const PlannerRun::Next next{0, token};
    TRY(session->step({&next, 1}, cancel));
  }

  const PlannerAnswer answer = parse_answer(planner.tokenizer().decode(tokens));
  MusicRequest heard;
  heard.caption = answer.caption;
  heard.lyrics = answer.lyrics;
  heard.bpm = answer.bpm;
  heard.duration = answer.duration;
  heard.keyscale = answer.keyscale;
  heard.timesignature = answer.timesignature;
  heard.vocal_language = answer.language;
  heard.audio_codes = audio_codes_text(codes);
  heard.seed = request.seed;
  heard.lm_seed = request.lm_seed < 0 ? lm_seed : request.lm_seed;
  return heard;
}

}  // namespace hocket
