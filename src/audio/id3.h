// audio/id3.h: the tag at the start of an MP3 file.
//
// Threads  pure functions.
// Source   id3.org, ID3v2.4: frames TIT2, COMM, TSSE in UTF-8.
#pragma once

#include <cstddef>
#include <vector>

#include "audio/write.h"

namespace hocket {

// Empty when there is nothing to say.
std::vector<std::byte> id3_tag(const AudioTags& tags);

}  // namespace hocket
