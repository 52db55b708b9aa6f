// http/music_json.h: jobs and the store of music models as JSON, and what the endpoints of music share.
//
// Threads  pure functions.
// Errors   music_of(): kUnsupported (reason "models_missing") of a server without music.
#pragma once

#include "base/json.h"
#include "engine/music_service.h"
#include "http/exchange.h"
#include "http/request_body.h"

namespace hocket {

Result<MusicService*> music_of(const Api& api);

// Whose jobs a request may see: those of its key. Without keys everybody's are everybody's.
std::string job_owner(const HttpRequest& request, const Api& api);

// `status` is one of the four words of acestep.cpp's clients, `state` says more.
Json job_json(const JobStatus& job);

// The keys of /props that music clients read.
void add_music_props(Json& props, const MusicService& music);

// One file, or all of them as multipart/mixed.
HttpResponse file_response(BlobFile file, bool as_attachment);
HttpResponse mixed_response(std::vector<BlobFile> files);

}  // namespace hocket
