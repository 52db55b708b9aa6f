#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "http/reply_shape.h"

namespace hocket {
namespace {

// The legacy API writes tokens that are not whole characters as "bytes:\xe2\x80".
std::string token_text(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

// Characters that begin in these bytes.
std::size_t n_characters(std::string_view bytes) {
  std::size_t n = 0;
  for (const char c : bytes) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

// `offset`: characters of the text before these tokens; moves on.
Json logprobs_json(const std::vector<TokenLogprobs>& tokens, std::size_t& offset) {
  Json names = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const TokenLogprobs& token : tokens) {
    names.push_back(token_text(token.token.bytes));
    values.push_back(finite_logprob(token.token.logprob));
    Json top = Json::object();
    for (const TopToken& t : token.top) top[token_text(t.bytes)] = finite_logprob(t.logprob);
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += n_characters(token.token.bytes);
  }
  Json json = Json::object();
  json["tokens"] = std::move(names);
  json["token_logprobs"] = std::move(values);
  json["top_logprobs"] = std::move(tops);
  json["text_offset"] = std::move(offsets);
  return json;
}

class CompletionShape final : public ReplyShape {
 public:
  CompletionShape(ReplyIdentity identity, bool logprobs) : ReplyShape(std::move(identity)), logprobs_(logprobs) {}

  std::vector<Json> delta(const DeltaEvent& event) override {
    std::string text;
    for (const ReplyDelta& d : event.deltas) text += d.text;
    const bool has_logprobs = logprobs_ && !event.logprobs.empty();
    std::vector<Json> chunks;
    if (text.empty() && !has_logprobs) return chunks;
    if (offsets_.size() <= event.choice) offsets_.resize(event.choice + 1);
    std::size_t& offset = offsets_[event.choice];
    // Text without tokens (an echoed prompt) moves the offset too.
    if (!has_logprobs) offset += n_characters(text);
    chunks.push_back(
        choice_chunk(event.choice, text, has_logprobs ? logprobs_json(event.logprobs, offset) : nullptr, nullptr));
    return chunks;
  }

  std::vector<Json> finish(const ChoiceFinished& event) override {
    std::vector<Json> chunks;
    chunks.push_back(choice_chunk(event.choice, "", nullptr, std::string(finish_reason_name(event.reason))));
    return chunks;
  }

  Json body(const std::vector<CollectedChoice>& choices, const Usage& usage) const override {
    Json json = head("text_completion");
    Json list = Json::array();
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const CollectedChoice& choice = choices[i];
      // What precedes the first token with numbers is an echoed prompt.
      std::size_t n_tokens_characters = 0;
      for (const TokenLogprobs& t : choice.logprobs) n_tokens_characters += n_characters(t.token.bytes);
      const std::size_t n_all = n_characters(choice.content);
      std::size_t offset = n_all > n_tokens_characters ? n_all - n_tokens_characters : 0;
      Json logprobs = logprobs_ ? logprobs_json(choice.logprobs, offset) : Json(nullptr);
      list.push_back(
          choice_json(i, choice.content, std::move(logprobs), std::string(finish_reason_name(choice.reason))));
    }
    json["choices"] = std::move(list);
    json["usage"] = usage_json(usage);
    return json;
  }

 private:
  std::string_view chunk_object() const override { return "text_completion"; }

  static Json choice_json(std::size_t choice, const std::string& text, Json logprobs, Json reason) {
    Json json = Json::object();
    json["text"] = text;
    json["index"] = choice;
    json["logprobs"] = std::move(logprobs);
    json["finish_reason"] = std::move(reason);
    return json;
  }
  Json choice_chunk(std::size_t choice, const std::string& text, Json logprobs, Json reason) const {
    return chunk(choice_json(choice, text, std::move(logprobs), std::move(reason)));
  }

  const bool logprobs_;
  std::vector<std::size_t> offsets_;
};

}  // namespace

std::unique_ptr<ReplyShape> make_completion_shape(ReplyIdentity identity, bool logprobs) {
  return std::make_unique<CompletionShape>(std::move(identity), logprobs);
}

}  // namespace hocket
