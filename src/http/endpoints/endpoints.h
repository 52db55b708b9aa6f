// http/endpoints/endpoints.h: the handlers that the router's table names. docs/adding-an-endpoint.md tells how to add
// one.
//
// A handler runs on its connection's thread, after Host, key, content type and size were checked. It may throw: the
// router answers 500.
#pragma once

#include "http/exchange.h"
#include "http/request_body.h"

namespace hocket {

HttpResponse get_welcome(const HttpRequest& request, const Api& api);
HttpResponse get_livez(const HttpRequest& request, const Api& api);
HttpResponse get_health(const HttpRequest& request, const Api& api);
HttpResponse get_metrics(const HttpRequest& request, const Api& api);
HttpResponse get_props(const HttpRequest& request, const Api& api);
HttpResponse get_logs(const HttpRequest& request, const Api& api);

HttpResponse post_chat_completions(const HttpRequest& request, const Api& api);
HttpResponse post_completions(const HttpRequest& request, const Api& api);
HttpResponse post_embeddings(const HttpRequest& request, const Api& api);
HttpResponse get_models(const HttpRequest& request, const Api& api);
HttpResponse get_model(const HttpRequest& request, const Api& api);  // path: /v1/models/{id}

HttpResponse post_tokenize(const HttpRequest& request, const Api& api);
HttpResponse post_detokenize(const HttpRequest& request, const Api& api);
HttpResponse post_apply_template(const HttpRequest& request, const Api& api);

HttpResponse post_cancel(const HttpRequest& request, const Api& api);
HttpResponse post_flow_ack(const HttpRequest& request, const Api& api);
HttpResponse post_pause(const HttpRequest& request, const Api& api);
HttpResponse post_resume(const HttpRequest& request, const Api& api);
HttpResponse post_cache_clear(const HttpRequest& request, const Api& api);
HttpResponse get_cache_status(const HttpRequest& request, const Api& api);
HttpResponse post_cache_fork(const HttpRequest& request, const Api& api);
HttpResponse get_sessions(const HttpRequest& request, const Api& api);
HttpResponse get_session_state(const HttpRequest& request, const Api& api);  // path: /v1/sessions/{id}/state
HttpResponse put_session_state(const HttpRequest& request, const Api& api);  // the same
HttpResponse delete_session(const HttpRequest& request, const Api& api);     // path: /v1/sessions/{id}
HttpResponse get_generation_status(const HttpRequest& request, const Api& api);

// Music in the protocol of acestep.cpp: a request becomes a job, whose result is asked for later.
HttpResponse post_lm(const HttpRequest& request, const Api& api);
HttpResponse post_synth(const HttpRequest& request, const Api& api);
HttpResponse post_understand(const HttpRequest& request, const Api& api);
HttpResponse post_vae(const HttpRequest& request, const Api& api);
HttpResponse get_job(const HttpRequest& request, const Api& api);   // /job?id=…[&result=1]
HttpResponse post_job(const HttpRequest& request, const Api& api);  // /job?id=…&cancel=1
HttpResponse post_props_refresh(const HttpRequest& request, const Api& api);
// The same jobs file by file.
HttpResponse get_jobs(const HttpRequest& request, const Api& api);
HttpResponse get_one_job(const HttpRequest& request, const Api& api);  // /v1/jobs/{id}, /v1/jobs/{id}/files/{n}
HttpResponse delete_job(const HttpRequest& request, const Api& api);   // /v1/jobs/{id}
HttpResponse post_audio_generations(const HttpRequest& request, const Api& api);

}  // namespace hocket
