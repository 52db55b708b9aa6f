// engine/model_identity.h: a short mark of the build and the model, so that a seed's promise has a meaning.
//
// Threads  pure functions.
// Cost     hashes the header of the file, not the weights.
#pragma once

#include <string>

#include "weights/gguf.h"

namespace hocket {

// "fp_" and 16 hexadecimal digits: XXH64 of program version, file size, metadata and tensor directory.
std::string model_fingerprint(const GgufFile& file);

}  // namespace hocket
