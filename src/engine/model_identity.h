// engine/model_identity.h: a short mark of the build and the model, so that a seed's promise has a meaning.
//
// Threads  pure functions.
// Errors   identify_model(): kIo when the weights cannot be read.
// Cost     hashes the header of the file; identify_model() also a page of every tensor.
#pragma once

#include <string>

#include "base/result.h"
#include "lm/language_model.h"
#include "lm/runner.h"
#include "runtime/sessions/session_state.h"
#include "weights/gguf.h"

namespace hocket {

// "fp_" and 16 hexadecimal digits: XXH64 of program version, file size, metadata and tensor directory.
std::string model_fingerprint(const GgufFile& file);

// What the numbers of a saved state depend on: the file, a sample of every tensor's weights included, but not the
// program's version; and the settings that decide how they come about.
Result<StateIdentity> identify_model(const GgufFile& file, const ModelSummary& summary, const std::string& device,
                                     const RunnerOptions& runner, std::size_t n_chunk);

}  // namespace hocket
