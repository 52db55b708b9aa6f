#include "http/reply_sender.h"

#include <future>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "http/error_reply.h"
#include "http/sse.h"

namespace hocket {
namespace {

// How long an event may be awaited before the client is looked at.
constexpr std::chrono::milliseconds kLookInterval{25};

Error client_gone() {
  return Error(ErrorCode::kCancelled, "the client closed the connection");
}

void log_metrics(const Api& api, const Json& numbers) {
  if (api.metrics_log != nullptr) api.metrics_log->write(numbers);
}

// Writes one reply's events. Holds the last finish chunk back until it is known whether the numbers join it.
class StreamWriter {
 public:
  StreamWriter(Reply& reply, ReplyShape& shape, ClientLink& link, const Api& api)
      : reply_(reply), shape_(shape), link_(link), watch_(link), api_(api) {}

  void run() {
    while (true) {
      if (watch_.gone()) return abandon();
      auto event = reply_.next(kLookInterval);
      if (!event) return fail(event.error());
      if (!*event) {
        const auto interval = api_.options.ping_interval;
        if (interval.count() > 0 && Clock::now() - last_write_ >= interval && !send(kSsePing)) return abandon();
        continue;
      }
      if (!write_event(**event)) return abandon();
      if (std::holds_alternative<ReplyDone>(**event)) return;
    }
  }

 private:
  bool write_event(const ReplyEvent& event) {
    if (const auto* done = std::get_if<ReplyDone>(&event)) return finish(*done);
    if (const auto* progress = std::get_if<ProgressEvent>(&event))
      return !shape_.identity().style.progress || send(sse_event(shape_.progress(*progress)));
    if (!flush_held()) return false;
    if (const auto* delta = std::get_if<DeltaEvent>(&event)) return send_all(shape_.chunks(*delta));
    const auto& finished = std::get<ChoiceFinished>(event);
    std::vector<Json> chunks = shape_.finish(finished);
    held_ = std::move(chunks.back());
    chunks.pop_back();
    last_reason_ = finished.reason;
    return send_all(chunks);
  }

  bool finish(const ReplyDone& done) {
    if (shape_.identity().style.include_usage) {
      if (!flush_held()) return false;
      held_ = shape_.usage(done.usage);
    }
    Json numbers = shape_.numbers(done, last_reason_);
    log_once(numbers);
    if (held_) shape_.add_numbers(*held_, done, std::move(numbers));
    return flush_held() && send(kSseDone);
  }

  // An error is an event like the others, but no [DONE] follows: it must not look like an end.
  void fail(const Error& error) {
    log_once(shape_.failure(error));
    link_.close_after();
    if (flush_held()) send(sse_event(error_body(error)));
  }

  void abandon() {
    reply_.cancel();
    link_.close_after();
    log_once(shape_.failure(client_gone()));
    log_debug("{}: client gone, reply canceled", shape_.identity().request_id);
  }

  void log_once(const Json& numbers) {
    if (!std::exchange(logged_, true)) log_metrics(api_, numbers);
  }

  bool flush_held() {
    if (!held_) return true;
    const std::string text = sse_event(*held_);
    held_.reset();
    return send(text);
  }

  bool send_all(const std::vector<Json>& chunks) {
    std::string text;
    for (const Json& chunk : chunks) text += sse_event(chunk);
    return text.empty() || send(text);
  }

  bool send(std::string_view text) {
    last_write_ = Clock::now();
    return link_.write(text);
  }

  Reply& reply_;
  ReplyShape& shape_;
  ClientLink& link_;
  DisconnectWatch watch_;
  const Api& api_;
  Clock::time_point last_write_ = Clock::now();
  std::optional<Json> held_;
  FinishReason last_reason_ = FinishReason::kStop;
  bool logged_ = false;
};

Result<Json> collect_body(Reply& reply, const ReplyShape& shape, ClientLink& link, const Api& api) {
  DisconnectWatch watch(link);
  std::vector<CollectedChoice> choices;
  while (true) {
    if (watch.gone()) {
      reply.cancel();
      return client_gone();
    }
    TRY_ASSIGN(const auto event, reply.next(kLookInterval));
    if (!event) continue;
    if (const auto* delta = std::get_if<DeltaEvent>(&*event)) collect(*delta, choices);
    if (const auto* finished = std::get_if<ChoiceFinished>(&*event)) collect(*finished, choices);
    if (const auto* done = std::get_if<ReplyDone>(&*event)) {
      Json body = shape.body(choices, done->usage);
      Json numbers = shape.numbers(*done, choices.empty() ? FinishReason::kStop : choices.back().reason);
      log_metrics(api, numbers);
      shape.add_numbers(body, *done, std::move(numbers));
      return body;
    }
  }
}

}  // namespace

HttpResponse send_reply(std::unique_ptr<Reply> reply, std::unique_ptr<ReplyShape> shape, ClientLink& link,
                        const Api& api) {
  if (!shape->identity().style.stream) {
    auto body = collect_body(*reply, *shape, link, api);
    if (!body) {
      log_metrics(api, shape->failure(body.error()));
      return error_response(body.error());
    }
    HttpResponse response;
    response.body = dump_json(*body);
    return response;
  }
  // std::function wants to be copyable.
  return sse_response([reply = std::shared_ptr<Reply>(std::move(reply)),
                       shape = std::shared_ptr<ReplyShape>(std::move(shape)),
                       &api](ClientLink& stream) { StreamWriter(*reply, *shape, stream, api).run(); });
}

Result<EmbeddingResult> watch_client(ClientLink& link,
                                     const std::function<Result<EmbeddingResult>(CancelToken)>& work) {
  CancelToken cancel;
  auto result = std::async(std::launch::async, work, cancel);
  DisconnectWatch watch(link);
  while (result.wait_for(kLookInterval) != std::future_status::ready)
    if (watch.gone()) cancel.cancel();
  return result.get();
}

}  // namespace hocket
