// tests/chat/reply_reading.h: reads an answer given in pieces, and follows a constraint with a text.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "chat/reply_format.h"
#include "tokenizer/token_constraint.h"

namespace hocket::testing {

struct Call {
  std::string name, arguments;
  bool operator==(const Call&) const = default;
};
inline void PrintTo(const Call& call, std::ostream* out) {
  *out << call.name << "(" << call.arguments << ")";
}

struct Reply {
  std::string content, reasoning;
  std::vector<Call> calls;
  bool operator==(const Reply&) const = default;
};
inline void PrintTo(const Reply& r, std::ostream* out) {
  *out << "content [" << r.content << "] reasoning [" << r.reasoning << "] calls " << ::testing::PrintToString(r.calls);
}

inline void add(Reply& reply, const std::vector<ReplyDelta>& deltas) {
  for (const ReplyDelta& delta : deltas) {
    switch (delta.kind) {
      case ReplyDelta::Kind::kContent:
        reply.content += delta.text;
        break;
      case ReplyDelta::Kind::kReasoning:
        reply.reasoning += delta.text;
        break;
      case ReplyDelta::Kind::kToolCallStart:
        EXPECT_EQ(delta.index, reply.calls.size());
        EXPECT_FALSE(delta.call_id.empty());
        reply.calls.push_back({delta.call_name, ""});
        break;
      case ReplyDelta::Kind::kToolCallArguments:
        ASSERT_LT(delta.index, reply.calls.size());
        EXPECT_EQ(delta.index + 1, reply.calls.size());
        reply.calls[delta.index].arguments += delta.text;
        break;
    }
  }
}

inline Reply read_reply(const ReplyFormat& format, const std::vector<std::string>& pieces, bool starts_in_thinking,
                        const std::vector<Tool>& offered) {
  const auto parser = ReplyParser::create(format, offered, starts_in_thinking);
  Reply reply;
  for (const std::string& piece : pieces) add(reply, parser->push(piece));
  add(reply, parser->finish());
  EXPECT_EQ(parser->n_tool_calls(), reply.calls.size());
  return reply;
}

inline std::vector<std::string> single_bytes(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) out.emplace_back(1, c);
  return out;
}

// Whether the text may be written, and the answer end after it; one token a byte.
inline bool follows(const TokenConstraint& start, const Tokenizer& tokenizer, const std::string& text) {
  const auto constraint = start.clone();
  std::vector<uint32_t> mask((tokenizer.size() + 31) / 32);
  const auto allowed = [&](TokenId id) {
    const auto masked = constraint->allowed(mask);
    EXPECT_TRUE(masked.ok());
    return masked.ok() && (!*masked || (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1u) != 0);
  };
  for (const char c : text) {
    const TokenId id = static_cast<unsigned char>(c);
    if (!allowed(id) || !constraint->accept(id).ok()) return false;
  }
  return allowed(tokenizer.end_of_generation().front());
}

}  // namespace hocket::testing
