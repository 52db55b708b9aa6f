#include <nlohmann/json.hpp>

#include "http/reply_shape.h"

namespace hocket {
namespace {

Json call_json(const ToolCall& call) {
  Json function = Json::object();
  function["name"] = call.name;
  function["arguments"] = call.arguments;
  Json json = Json::object();
  json["id"] = call.id;
  json["type"] = "function";
  json["function"] = std::move(function);
  return json;
}

Json logprobs_json(const std::vector<TokenLogprobs>& tokens) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) content.push_back(chat_logprob_json(token));
  Json json = Json::object();
  json["content"] = std::move(content);
  json["refusal"] = nullptr;
  return json;
}

Json delta_json(const ReplyDelta& delta) {
  Json json = Json::object();
  switch (delta.kind) {
    case ReplyDelta::Kind::kContent:
      json["content"] = delta.text;
      return json;
    case ReplyDelta::Kind::kReasoning:
      json["reasoning_content"] = delta.text;
      return json;
    default:
      break;
  }
  Json call = Json::object();
  call["index"] = delta.index;
  // id, type and name come once; clients join the later pieces by index.
  if (delta.kind == ReplyDelta::Kind::kToolCallStart) {
    call["id"] = delta.call_id;
    call["type"] = "function";
    call["function"] = Json::object({{"name", delta.call_name}, {"arguments", delta.text}});
  } else {
    call["function"] = Json::object({{"arguments", delta.text}});
  }
  json["tool_calls"] = Json::array({std::move(call)});
  return json;
}

class ChatShape final : public ReplyShape {
 public:
  ChatShape(ReplyIdentity identity, bool logprobs) : ReplyShape(std::move(identity)), logprobs_(logprobs) {}

  std::vector<Json> delta(const DeltaEvent& event) override {
    std::vector<Json> chunks;
    introduce(event.choice, chunks);
    // Log-probabilities belong to the event as a whole: they go with its first chunk.
    bool pending = logprobs_ && !event.logprobs.empty();
    const auto logprobs = [&] { return std::exchange(pending, false) ? logprobs_json(event.logprobs) : Json(nullptr); };
    for (const ReplyDelta& d : event.deltas)
      chunks.push_back(choice_chunk(event.choice, delta_json(d), logprobs(), nullptr));
    if (pending) chunks.push_back(choice_chunk(event.choice, Json::object(), logprobs(), nullptr));
    return chunks;
  }

  std::vector<Json> finish(const ChoiceFinished& event) override {
    std::vector<Json> chunks;
    introduce(event.choice, chunks);
    chunks.push_back(
        choice_chunk(event.choice, Json::object(), nullptr, std::string(finish_reason_name(event.reason))));
    return chunks;
  }

  Json body(const std::vector<CollectedChoice>& choices, const Usage& usage) const override {
    Json json = head("chat.completion");
    Json list = Json::array();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const CollectedChoice& choice = choices[i];
      Json message = Json::object();
      message["role"] = "assistant";
      message["content"] = choice.content.empty() && !choice.tool_calls.empty() ? Json(nullptr) : Json(choice.content);
      message["refusal"] = nullptr;
      if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
      if (!choice.tool_calls.empty()) {
        message["tool_calls"] = Json::array();
        for (const ToolCall& call : choice.tool_calls) message["tool_calls"].push_back(call_json(call));
      }
      Json entry = Json::object();
      entry["index"] = i;
      entry["message"] = std::move(message);
      entry["logprobs"] = logprobs_ ? logprobs_json(choice.logprobs) : Json(nullptr);
      entry["finish_reason"] = std::string(finish_reason_name(choice.reason));
      list.push_back(std::move(entry));
    }
    json["choices"] = std::move(list);
    json["usage"] = usage_json(usage);
    return json;
  }

 private:
  std::string_view chunk_object() const override { return "chat.completion.chunk"; }

  // The first chunk of a choice says who speaks.
  void introduce(std::size_t choice, std::vector<Json>& chunks) {
    if (introduced_.size() <= choice) introduced_.resize(choice + 1);
    if (introduced_[choice]) return;
    introduced_[choice] = true;
    chunks.push_back(choice_chunk(choice, Json::object({{"role", "assistant"}, {"content", ""}}), nullptr, nullptr));
  }

  Json choice_chunk(std::size_t choice, Json delta, Json logprobs, Json reason) const {
    Json json = Json::object();
    json["index"] = choice;
    json["delta"] = std::move(delta);
    json["logprobs"] = std::move(logprobs);
    json["finish_reason"] = std::move(reason);
    return chunk(std::move(json));
  }

  const bool logprobs_;
  std::vector<bool> introduced_;
};

}  // namespace

std::unique_ptr<ReplyShape> make_chat_shape(ReplyIdentity identity, bool logprobs) {
  return std::make_unique<ChatShape>(std::move(identity), logprobs);
}

}  // namespace hocket
