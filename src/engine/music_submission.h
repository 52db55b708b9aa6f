// engine/music_submission.h: checks a request for music before it becomes a job, so that nothing waits in vain.
//
// Threads  any; sounds are decoded one at a time, because a long one takes 230 MB.
// Errors   those of MusicService::submit().
// Cost     decodes the sounds.
#pragma once

#include "engine/music_library.h"
#include "engine/music_service.h"

namespace hocket {

Result<void> check_models(const MusicLibrary& library, MusicTask task);

// The job of the submission: only what its runner will use, and warnings for the rest.
Result<NewJob> check_submission(const MusicSubmission& submission, MusicLibrary& library, int max_batch);

}  // namespace hocket
