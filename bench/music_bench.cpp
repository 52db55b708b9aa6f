// Times the networks of ACE-Step one by one on files of real sizes (make_music_models), by the clock and by processor
// time, with the multiply-adds of each: what a song of so many seconds costs, and how near that is to the machine's
// peak.
//
//   music_bench FOLDER [--seconds 30] [--threads N] [--only dit] [--steps 1]
//
// An operation is a multiplication or an addition; compare with `peak --cpu-time` of the type's instructions.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compute/device.h"
#include "music/cond/condition_encoder.h"
#include "music/dit/dit.h"
#include "music/fsq/fsq_detokenizer.h"
#include "music/model_file.h"
#include "music/text_encoder/text_encoder.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"
#include "store/model_folder.h"

namespace hocket {
namespace {

struct Settings {
  std::string folder, only;
  double seconds = 30;
  int n_threads = 0, n_steps = 1, n_tokens = 128;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double most_resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Times {
  double clock = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  Times since() const {
    const Times now;
    Times out;
    out.clock = now.clock - clock;
    out.cpu = now.cpu - cpu;
    return out;
  }
};

void row(const std::string& what, const Times& t, double operations) {
  const std::string rate = operations > 0 ? fmt::format("{:.2f} | {:.1f}", operations / 1e12, operations / t.cpu / 1e9)
                                          : std::string("– | –");
  fmt::print("| {} | {:.2f} | {:.2f} | {} | {:.0f} |\n", what, t.clock, t.cpu, rate, most_resident_mib());
  std::fflush(stdout);
}

std::vector<float> random_floats(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

double n_elements(const TensorInfo& t) {
  return static_cast<double>(t.ne[0]) * static_cast<double>(t.ne[1]) * static_cast<double>(t.ne[2]);
}

// Of all matrices whose names begin so, each with every one of n columns.
double of_matrices(const GgufFile& file, const std::string& prefix, double n) {
  double sum = 0;
  for (const TensorInfo& t : file.tensors())
    if (t.name.starts_with(prefix) && t.name.ends_with("proj.weight")) sum += 2 * n_elements(t) * n;
  return sum;
}

double of_dit(const DitFile& dit, int64_t n_frames, int64_t n_enc) {
  const DitConfig& config = dit.config();
  const auto n = static_cast<double>(n_frames / config.patch), enc = static_cast<double>(n_enc);
  double sum = 0;
  for (const TensorInfo& t : dit.gguf()->tensors()) {
    if (!t.name.starts_with("decoder.layers.") || !t.name.ends_with("proj.weight")) continue;
    const bool of_condition =
        t.name.find("cross_attn.k_proj") != std::string::npos || t.name.find("cross_attn.v_proj") != std::string::npos;
    sum += 2 * n_elements(t) * (of_condition ? enc : n);
  }
  const double in_sight = std::min(n, static_cast<double>(2 * config.window + 1));
  const double row = 4 * static_cast<double>(config.layer.n_head * config.layer.head_dim) * n;
  const auto n_layer = static_cast<double>(config.n_layer);
  return sum + row * n_layer * ((in_sight + n) / 2 + enc);
}

// Convolutions of the decoder or encoder, each at the rate it works at.
double of_vae(const GgufFile& file, const std::string& side, double n_frames, double n_samples) {
  const bool up = side == "decoder.";
  double n = up ? n_frames : n_samples, sum = 0;
  std::map<std::string, const TensorInfo*> all;
  for (const TensorInfo& t : file.tensors())
    if (t.name.ends_with(".weight_v")) all[t.name.substr(0, t.name.size() - 9)] = &t;
  const auto add = [&](const std::string& name) {
    const auto it = all.find(side + name);
    if (it != all.end()) sum += 2 * n_elements(*it->second) * n;
  };
  add("conv1");
  for (int i = 0; i < 16; ++i) {
    const std::string p = fmt::format("block.{}.", i);
    const auto resampling = all.find(side + p + (up ? "conv_t1" : "conv1"));
    if (resampling == all.end()) break;
    const double stride = static_cast<double>(resampling->second->ne[0]) / 2;
    if (up) {
      add(p + "conv_t1");
      n *= stride;
    }
    for (int r = 1; r <= 3; ++r)
      for (const char* conv : {"conv1", "conv2"}) add(fmt::format("{}res_unit{}.{}", p, r, conv));
    if (!up) {
      n /= stride;
      add(p + "conv1");
    }
  }
  add("conv2");
  return sum;
}

Result<std::string> file_of(const ModelFolder& folder, MusicFileKind kind) {
  const ModelFileEntry* entry = folder.find(music_architecture(kind), {});
  if (!entry) return Error(ErrorCode::kNotFound, fmt::format("no {} in the folder", music_architecture(kind)));
  return entry->path;
}

Result<void> bench(const Settings& s) {
  TRY_ASSIGN(const ModelFolder folder, ModelFolder::scan(s.folder));
  TRY_ASSIGN(const MusicCompute compute, MusicCompute::create("", s.n_threads));
  const auto wanted = [&](const char* name) { return s.only.empty() || s.only == name; };
  const auto n_frames = static_cast<int64_t>(s.seconds * 25) / 2 * 2;
  const CancelToken cancel;
  fmt::print(
      "{:.0f} s of sound, {} threads\n\n| network | clock, s | processor, s | TOP | GOP a processor second | most "
      "memory, MiB |\n|---|---:|---:|---:|---:|---:|\n",
      s.seconds, compute.threads->n_threads());
  const auto n_tokens = static_cast<std::size_t>(s.n_tokens);
  constexpr std::size_t kText = 1024;
  if (wanted("text")) {
    TRY_ASSIGN(const std::string path, file_of(folder, MusicFileKind::kTextEncoder));
    TRY_ASSIGN(std::shared_ptr<const GgufFile> file, open_music_file(path, MusicFileKind::kTextEncoder));
    Times t;
    TRY_ASSIGN(const auto encoder, TextEncoder::load(file, compute));
    row("text encoder, loading", t.since(), 0);
    t = Times();
    TRY(encoder->encode(std::vector<int32_t>(n_tokens, 65), cancel));
    row(fmt::format("text encoder, {} tokens", n_tokens), t.since(), of_matrices(*file, "layers.", s.n_tokens));
  }
  TRY_ASSIGN(const std::string dit_path, file_of(folder, MusicFileKind::kDit));
  TRY_ASSIGN(const std::shared_ptr<const DitFile> dit_file, DitFile::open(dit_path));
  if (wanted("cond")) {
    Times t;
    TRY_ASSIGN(const auto encoder, ConditionEncoder::load(dit_file, compute));
    row("condition encoder, loading", t.since(), 0);
    t = Times();
    const std::vector<float> text = random_floats(kText * n_tokens);
    TRY(encoder->encode({text, text, random_floats(64)}, cancel));
    row(fmt::format("condition encoder, {} tokens", n_tokens), t.since(),
        of_matrices(*dit_file->gguf(), "encoder.lyric_encoder.", s.n_tokens));
  }
  if (wanted("fsq")) {
    Times t;
    TRY_ASSIGN(const auto fsq, FsqDetokenizer::load(dit_file, compute));
    row("FSQ detokenizer, loading", t.since(), 0);
    t = Times();
    TRY(fsq->decode(std::vector<int32_t>(static_cast<std::size_t>(n_frames / 5), 7), cancel));
    row("FSQ detokenizer", t.since(), of_matrices(*dit_file->gguf(), "detokenizer.", static_cast<double>(n_frames)));
  }
  if (wanted("dit")) {
    Times t;
    TRY_ASSIGN(const auto dit, Dit::load(dit_file, compute));
    row("DiT, loading", t.since(), 0);
    const auto n = static_cast<std::size_t>(n_frames * dit->config().n_channels);
    const int64_t n_enc = 2 * s.n_tokens + 1;
    t = Times();
    TRY_ASSIGN(const auto pass, DitPass::create(*dit, {n_frames, {n_enc}, n_enc}));
    pass->set_context(random_floats(2 * n));
    pass->set_conditioning(random_floats(static_cast<std::size_t>(n_enc * dit->n_enc())));
    row(fmt::format("DiT, {:.0f} MiB of buffers", static_cast<double>(pass->compute_bytes()) / (1 << 20)), t.since(),
        0);
    for (int i = 0; i < s.n_steps; ++i) {
      t = Times();
      TRY(pass->run(random_floats(n), 0.5f, cancel));
      row("DiT, a step", t.since(), of_dit(*dit_file, n_frames, n_enc));
    }
  }
  if (!wanted("vae") && !wanted("encode")) return {};
  TRY_ASSIGN(const std::string vae_path, file_of(folder, MusicFileKind::kVae));
  TRY_ASSIGN(std::shared_ptr<const GgufFile> vae, open_music_file(vae_path, MusicFileKind::kVae));
  const auto frames = static_cast<double>(n_frames);
  if (wanted("vae")) {
    Times t;
    TRY_ASSIGN(const auto decoder, VaeDecoder::load(vae, compute));
    row("VAE decoder, loading", t.since(), 0);
    t = Times();
    TRY(decoder->decode(random_floats(static_cast<std::size_t>(n_frames * decoder->n_channels())), {}, cancel));
    row("VAE decoder", t.since(), of_vae(*vae, "decoder.", frames, 0));
  }
  if (wanted("encode")) {
    Times t;
    TRY_ASSIGN(const auto encoder, VaeEncoder::load(vae, compute));
    row("VAE encoder, loading", t.since(), 0);
    StereoAudio audio;
    audio.rate_hz = kMusicRateHz;
    audio.left = audio.right = random_floats(static_cast<std::size_t>(n_frames * encoder->samples_per_frame()));
    t = Times();
    TRY(encoder->encode(audio, {}, cancel));
    row("VAE encoder", t.since(), of_vae(*vae, "encoder.", frames, static_cast<double>(audio.n_samples())));
  }
  return {};
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  hocket::Settings s;
  CLI::App app("times of ACE-Step's networks");
  app.add_option("folder", s.folder, "files of a set, such as make_music_models writes")->required();
  app.add_option("--seconds", s.seconds, "of sound")->check(CLI::Range(0.2, 600.0))->capture_default_str();
  app.add_option("-t,--threads", s.n_threads, "threads (default: the physical cores)")->check(CLI::Range(1, 1024));
  app.add_option("--steps", s.n_steps, "steps of the DiT")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--tokens", s.n_tokens, "of the text, and of the lyrics")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--only", s.only, "one of them")
      ->check(CLI::IsMember({"text", "cond", "fsq", "dit", "vae", "encode"}));
  CLI11_PARSE(app, argc, argv);
  const auto done = hocket::bench(s);
  if (!done.ok()) std::fprintf(stderr, "music_bench: %s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
