// chat/harmony_parser.h: reads answers made of messages on channels (gpt-oss).
//
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
//   <|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}
//
// Analysis is reasoning; final, and commentary to nobody, are content; what is addressed to an offered function is a
// call, on any channel. The recipient stands before or after the channel. Other recipients, and headers that cannot be
// read, stay content as they are.
//
// Threads  one user at a time.
// Errors   none: text that breaks the format is content.
// Cost     linear in the text.
#pragma once

#include <memory>
#include <vector>

#include "chat/message.h"
#include "chat/reply_format.h"

namespace hocket {

std::unique_ptr<ReplyParser> make_harmony_parser(const std::vector<Tool>& tools);

}  // namespace hocket
