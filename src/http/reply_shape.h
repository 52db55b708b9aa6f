// http/reply_shape.h: reply events of the engine → JSON of the OpenAI API.
//
// A shape knows one API. The same events give one body (collect(), then body()) or a row of stream chunks (chunks of
// delta(), finish(), usage()).
//
// Threads  one reply, one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/requests.h"
#include "http/chat_request.h"

namespace hocket {

// What every chunk of a reply repeats, and what its numbers are about.
struct ReplyIdentity {
  std::string id;  // chatcmpl-…, cmpl-…
  std::string request_id;
  int64_t created = 0;
  std::string model;
  std::string fingerprint;
  ReplyStyle style;
};

struct CollectedChoice {
  std::string content, reasoning;
  std::vector<ToolCall> tool_calls;
  std::vector<TokenLogprobs> logprobs;
  FinishReason reason = FinishReason::kStop;
};
// Choices by index, in whatever order their events came.
void collect(const DeltaEvent& event, std::vector<CollectedChoice>& choices);
void collect(const ChoiceFinished& event, std::vector<CollectedChoice>& choices);

class ReplyShape {
 public:
  explicit ReplyShape(ReplyIdentity identity) : identity_(std::move(identity)) {}
  virtual ~ReplyShape() = default;

  // The chunks of a delta, with the number that the client acknowledges where it does.
  std::vector<Json> chunks(const DeltaEvent& event);
  virtual std::vector<Json> delta(const DeltaEvent& event) = 0;
  virtual std::vector<Json> finish(const ChoiceFinished& event) = 0;
  Json progress(const ProgressEvent& event) const;
  // The chunk with the numbers and no choices.
  Json usage(const Usage& usage) const;
  virtual Json body(const std::vector<CollectedChoice>& choices, const Usage& usage) const = 0;

  // The `hocket` object, and what stands for it in the metrics log when a reply ends with an error.
  Json numbers(const ReplyDone& done, FinishReason reason) const;
  Json failure(const Error& error) const;
  // Adds `timings` (llama-server's names) and `hocket` to the last chunk or the body.
  void add_numbers(Json& target, const ReplyDone& done, Json numbers) const;
  const ReplyIdentity& identity() const { return identity_; }

 protected:
  Json head(std::string_view object) const;
  Json chunk(Json choice) const;
  virtual std::string_view chunk_object() const = 0;

  ReplyIdentity identity_;
};

std::unique_ptr<ReplyShape> make_chat_shape(ReplyIdentity identity, bool logprobs);
std::unique_ptr<ReplyShape> make_completion_shape(ReplyIdentity identity, bool logprobs);

std::string_view finish_reason_name(FinishReason reason);
Json usage_json(const Usage& usage);
// One entry of chat's logprobs.content.
Json chat_logprob_json(const TokenLogprobs& token);
double finite_logprob(double logprob);

}  // namespace hocket
