// compute/thread_scratch.h: memory of a thread that operations of a graph may fill as they like.
//
// Owns     one buffer a thread, as large as the largest that was asked for.
// Cost     nothing when the thread had as much before.
#pragma once

#include <cstdint>

namespace hocket {

// n floats, aligned to 64 bytes, of no particular values; good until this thread's next call.
float* scratch_of_thread(int64_t n_floats);

}  // namespace hocket
