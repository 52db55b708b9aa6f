// chat/template.h: renders a conversation into a model's prompt with the Jinja template of its file.
//
// Semantics are those of Hugging Face transformers, including raise_exception, strftime_now, tojson and tool calls
// whose arguments are objects; docs/chat-templates.md lists the variables and what is done for templates that lack
// something.
//
// Owns     the parsed template. What is bounded and how: chat/jinja/program.h.
// Threads  render() from any thread.
// Errors   parse(): kBadModel with the line. render(): kInvalid with the template's own message (raise_exception) or
// line;
//          the limits below are errors too. Never a crash, whatever the template.
// Cost     linear in the messages for real templates; bounded by TemplateLimits for all.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "chat/message.h"

namespace hocket {

struct TemplateLimits {
  std::size_t max_source_bytes = 1u << 20;
  std::size_t max_output_bytes = 64u << 20;
  double max_render_ms = 10'000;  // of the rendering thread's own time
};

struct TemplateInput {
  std::vector<Message> messages;
  std::vector<Tool> tools;
  bool add_generation_prompt = true;
  // The last message is an assistant's and is to be continued: the prompt ends with its content.
  bool continue_final_message = false;
  bool enable_thinking = true;
  // Calls are part of the contents already: messages of the role tool stay what they are.
  bool calls_in_content = false;
  std::string kwargs_json;  // extra variables as a JSON object, "" = none; they win over the ones above
  std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
};

class ChatTemplate {
 public:
  // `source` is Jinja text; bos and eos are the texts of those tokens ("" when there are none).
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string source, std::string bos, std::string eos,
                                                     const TemplateLimits& limits);
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string source, std::string bos, std::string eos) {
    return parse(std::move(source), std::move(bos), std::move(eos), TemplateLimits());
  }
  virtual ~ChatTemplate() = default;

  virtual Result<std::string> render(const TemplateInput& input) const = 0;
  virtual const std::string& source() const = 0;
  // A conversation with calls, as the template prints it ("" when it fails); chat/template_probe.h has its words.
  virtual const std::string& call_sample() const = 0;

  // What probing the template at parse() showed.
  struct Capabilities {
    bool system_role = true;
    bool tools = false;            // renders tool definitions
    bool tool_calls = false;       // renders assistant tool calls
    bool object_arguments = true;  // wants tool-call arguments as an object, not text
    bool thinking = false;         // output depends on enable_thinking
  };
  virtual const Capabilities& capabilities() const = 0;
};

// The plain ChatML template, for files that have none.
std::string_view default_chat_template();

}  // namespace hocket
