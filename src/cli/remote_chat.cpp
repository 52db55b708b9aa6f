#include "cli/remote_chat.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/random_id.h"
#include "cli/conversation.h"
#include "cli/sampling_flags.h"
#include "http/client.h"
#include "http/sse_reader.h"

namespace hocket {
namespace {

ErrorCode code_of(int status) {
  if (status == 404) return ErrorCode::kNotFound;
  if (status == 429 || status == 503) return ErrorCode::kBusy;
  if (status == 499) return ErrorCode::kCancelled;
  if (status == 408 || status == 504) return ErrorCode::kTimeout;
  return status >= 400 && status < 500 ? ErrorCode::kInvalid : ErrorCode::kPeer;
}

std::string text_of(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

double number_of(const Json& object, const char* name) {
  if (!object.is_object()) return 0;
  const auto it = object.find(name);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::size_t count_of(const Json& object, const char* name) {
  const double value = number_of(object, name);
  return value > 0 && value < 1e15 ? static_cast<std::size_t>(value) : 0;
}

// {"error": {"message": …}}, or whatever else came with this status.
Error error_of(int status, const Json& body) {
  const Json error = body.is_object() && body.contains("error") ? body["error"] : Json();
  const std::string message = error.is_string() ? error.get<std::string>() : text_of(error, "message");
  return Error(code_of(status), message.empty() ? fmt::format("the server answered with status {}", status) : message,
               text_of(error, "param"));
}

// What a chunk of a stream says, as events.
class ChunkReader {
 public:
  using Item = std::variant<ReplyEvent, Error>;

  std::vector<Item> read(const Json& chunk) {
    std::vector<Item> items;
    if (chunk.is_object() && chunk.contains("error")) {
      items.emplace_back(error_of(500, chunk));
      ended_ = true;
      return items;
    }
    if (chunk.contains("choices") && chunk["choices"].is_array())
      for (const Json& choice : chunk["choices"]) read_choice(choice, items);
    if (chunk.contains("usage") && chunk["usage"].is_object()) read_usage(chunk["usage"]);
    if (chunk.contains("hocket")) read_numbers(chunk["hocket"]);
    return items;
  }
  std::optional<Item> end() {
    if (std::exchange(ended_, true)) return std::nullopt;
    done_.details = std::make_shared<ReplyDetails>(details_);
    return Item(ReplyEvent(done_));
  }
  bool ended() const { return ended_; }

 private:
  static void read_choice(const Json& choice, std::vector<Item>& items) {
    if (!choice.is_object()) return;
    const Json delta = choice.contains("delta") ? choice["delta"] : Json();
    DeltaEvent event;
    for (const auto& [field, kind] : {std::pair("reasoning_content", ReplyDelta::Kind::kReasoning),
                                      std::pair("content", ReplyDelta::Kind::kContent)}) {
      std::string text = text_of(delta, field);
      if (text.empty()) continue;
      ReplyDelta& part = event.deltas.emplace_back();
      part.kind = kind;
      part.text = std::move(text);
    }
    if (!event.deltas.empty()) items.emplace_back(ReplyEvent(std::move(event)));
    const std::string reason = text_of(choice, "finish_reason");
    if (reason.empty()) return;
    ChoiceFinished finished;
    if (reason == "length") finished.reason = FinishReason::kLength;
    if (reason == "tool_calls") finished.reason = FinishReason::kToolCalls;
    items.emplace_back(ReplyEvent(std::move(finished)));
  }
  void read_usage(const Json& usage) {
    done_.usage.prompt_tokens = count_of(usage, "prompt_tokens");
    done_.usage.completion_tokens = count_of(usage, "completion_tokens");
  }
  void read_numbers(const Json& own) {
    Timings& times = done_.timings;
    times.ttft_ms = number_of(own, "ttft_ms");
    times.decode_ms = number_of(own, "decode_ms");
    times.decode_tokens = done_.usage.completion_tokens > 0 ? done_.usage.completion_tokens - 1 : 0;
    times.drafted_tokens = count_of(own, "draft_n");
    times.accepted_tokens = count_of(own, "draft_n_accepted");
    details_.max_tokens = count_of(own, "effective_max_tokens");
    details_.context_full =
        own.is_object() && own.contains("context_capacity_reached") && own["context_capacity_reached"] == true;
  }

  ReplyDone done_;
  ReplyDetails details_;
  bool ended_ = false;
};

class RemoteReply final : public Reply {
 public:
  RemoteReply(std::unique_ptr<HttpClient> client, std::string body, std::string id)
      : client_(std::move(client)), id_(std::move(id)) {
    thread_ = std::thread([this, body = std::move(body)] { read(body); });
  }
  ~RemoteReply() override {
    client_->stop();
    thread_.join();
  }

  const std::string& request_id() const override { return id_; }
  int64_t created() const override { return 0; }
  void cancel() override { client_->stop(); }
  Result<std::optional<ReplyEvent>> next(std::chrono::milliseconds wait) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, wait, [&] { return !items_.empty(); })) return std::optional<ReplyEvent>();
    ChunkReader::Item item = std::move(items_.front());
    items_.pop_front();
    if (auto* error = std::get_if<Error>(&item)) return std::move(*error);
    return std::optional<ReplyEvent>(std::get<ReplyEvent>(std::move(item)));
  }

 private:
  void push(ChunkReader::Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_all();
  }

  void read(const std::string& body) {
    SseReader events;
    ChunkReader chunks;
    std::optional<Error> fault;
    const auto reply = client_->post("/v1/chat/completions", body, [&](std::string_view bytes) {
      const auto taken = events.take(bytes, [&](const std::string& data) {
        if (chunks.ended() || fault) return;
        if (data.starts_with("[DONE]")) {
          if (auto item = chunks.end()) push(std::move(*item));
          return;
        }
        const auto chunk = parse_json(data);
        if (!chunk) fault = Error(ErrorCode::kPeer, "the server's stream is no JSON: " + chunk.error().message);
        if (chunk)
          for (ChunkReader::Item& item : chunks.read(*chunk)) push(std::move(item));
      });
      if (!taken) fault = taken.error();
      return !fault;
    });
    if (chunks.ended()) return;
    if (fault) return push(std::move(*fault));
    if (!reply) return push(reply.error());
    if (reply->status != 200) {
      const auto told = parse_json(reply->body);
      return push(error_of(reply->status, told ? *told : Json()));
    }
    push(Error(ErrorCode::kPeer, "the server's stream ended too early"));
  }

  const std::unique_ptr<HttpClient> client_;
  const std::string id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ChunkReader::Item> items_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<RemoteChat>> RemoteChat::open(const std::string& url, const std::string& api_key,
                                                     const std::string& model) {
  std::unique_ptr<RemoteChat> peer(new RemoteChat(url, api_key));
  TRY_ASSIGN(const auto client, HttpClient::open(url, api_key));
  TRY_ASSIGN(const HttpReply reply, client->get("/v1/models"));
  const auto body = parse_json(reply.body);
  if (reply.status != 200) return error_of(reply.status, body ? *body : Json());
  if (!body || !body->is_object() || !body->contains("data") || !(*body)["data"].is_array())
    return Error(ErrorCode::kPeer, fmt::format("{} does not list its models as this API does", url), "url");
  std::vector<std::string> ids;
  for (const Json& entry : (*body)["data"]) {
    const std::string id = text_of(entry, "id");
    bool wanted = id == model || model.empty();
    if (entry.is_object() && entry.contains("aliases") && entry["aliases"].is_array())
      for (const Json& alias : entry["aliases"]) wanted = wanted || alias == model;
    ids.push_back(id);
    if (!wanted || !peer->model_.empty()) continue;
    peer->model_ = model.empty() ? id : model;
    peer->n_ctx_ = entry.contains("meta") ? count_of(entry["meta"], "n_ctx") : 0;
  }
  if (peer->model_.empty())
    return Error(ErrorCode::kNotFound,
                 model.empty() ? fmt::format("{} has no model", url)
                               : fmt::format("{} has no model \"{}\"; it has {}", url, model, fmt::join(ids, ", ")),
                 "model");
  return peer;
}

Result<std::unique_ptr<Reply>> RemoteChat::chat(ChatRequest request) {
  Json body = sampling_fields(request.params);
  body["model"] = model_;
  body["messages"] = messages_json(request.messages);
  body["stream"] = true;
  body["stream_options"] = Json::object({{"include_usage", true}});
  body["enable_thinking"] = request.enable_thinking;
  body["reuse_generated_state"] = request.serving.reuse_generated_state;
  // Each reply has a connection of its own, so that leaving it ends the request.
  TRY_ASSIGN(auto client, HttpClient::open(url_, api_key_));
  return std::unique_ptr<Reply>(std::make_unique<RemoteReply>(std::move(client), dump_json(body), random_id()));
}

}  // namespace hocket
