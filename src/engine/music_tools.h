// engine/music_tools.h: making music with files, in one call each: what the command line does.
//
// Threads  one call at a time.
// Errors   those of the pipelines; kIo and kNotFound for files.
// Cost     that of the networks, which are loaded for the call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "engine/music_engine.h"
#include "engine/music_files.h"
#include "music/latent_file.h"
#include "music/pipelines/progress.h"
#include "music/request.h"

namespace hocket {

struct MusicOptions : MusicRunOptions {
  MusicFiles files;
};

// Sound out of files; at most one of the two is given.
struct SoundFile {
  std::string audio, latent;
};

struct SynthFilesJob {
  std::vector<MusicRequest> requests;
  SoundFile source, timbre;
  std::string adapter;  // a .safetensors file or a folder; "": that of the request, in `adapter_folder`
  std::string adapter_folder;
  // "song.mp3": the file of one track; several get their number before the ending. The ending is set by the format.
  std::string output;
  bool numbered = false;      // also a single track
  bool keep_latents = false;  // "song.latent" beside each
};

// The paths that were written.
Result<std::vector<std::string>> synth_to_files(const MusicOptions& options, const SynthFilesJob& job,
                                                const MusicProgressFunction& progress, const CancelToken& cancel);

// What synth_to_files() would take.
Result<SynthMemory> plan_synth(const MusicOptions& options, const SynthFilesJob& job, const CancelToken& cancel);

Result<std::vector<MusicRequest>> compose_requests(const MusicOptions& options,
                                                   const std::vector<MusicRequest>& requests,
                                                   const MusicProgressFunction& progress, const CancelToken& cancel);

// What compose_requests() would take.
Result<MemoryPlan> plan_compose(const MusicOptions& options, const std::vector<MusicRequest>& requests);

// A request as a JSON file.
Result<void> save_request(const std::string& path, const MusicRequest& request);

Result<MusicRequest> understand_sound(const MusicOptions& options, const SoundFile& sound, const MusicRequest& request,
                                      const MusicProgressFunction& progress, const CancelToken& cancel);
// The defaults of requests to understand_sound().
MusicRequest understanding_request();

Result<void> encode_to_latent(const MusicOptions& options, const std::string& audio, const std::string& output,
                              LatentFormat format, const MusicProgressFunction& progress, const CancelToken& cancel);
// `request` gives output_format, peak_clip and mp3_bitrate.
Result<void> decode_from_latent(const MusicOptions& options, const std::string& latent, const std::string& output,
                                const MusicRequest& request, const MusicProgressFunction& progress,
                                const CancelToken& cancel);

}  // namespace hocket
