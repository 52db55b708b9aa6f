// http/reply_sender.h: carries one reply from the engine to its client, as a stream or as one body.
//
// The reply is canceled as soon as the client is gone.
//
// Threads  the connection's thread.
#pragma once

#include <memory>

#include "engine/chat_service.h"
#include "http/exchange.h"
#include "http/reply_shape.h"
#include "http/request_body.h"

namespace hocket {

// Answers at once with a stream, or waits for the reply's end. `link` is the request's. However the reply ends, the
// metrics log of `api` gets its line.
HttpResponse send_reply(std::unique_ptr<Reply> reply, std::unique_ptr<ReplyShape> shape, ClientLink& link,
                        const Api& api);

// Calls work(cancel) on a thread of its own and watches the client meanwhile: cancel is set when it is gone.
Result<EmbeddingResult> watch_client(ClientLink& link, const std::function<Result<EmbeddingResult>(CancelToken)>& work);

}  // namespace hocket
