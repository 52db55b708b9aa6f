#include "chat/template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/jinja/program.h"
#include "chat/template_input.h"
#include "chat/template_probe.h"

namespace hocket {
namespace {

// Stands after the content that is to be continued; where it comes out, the prompt ends.
constexpr std::string_view kContinueMark = "<|hocket-continue-here|> ";

std::string_view trimmed_end(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n\f\v");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(std::string source, std::string bos, std::string eos, std::unique_ptr<JinjaProgram> program,
                ProbeResult probe)
      : source_(std::move(source)),
        bos_(std::move(bos)),
        eos_(std::move(eos)),
        program_(std::move(program)),
        probe_(std::move(probe)) {}

  Result<std::string> render(const TemplateInput& input) const override {
    return input.continue_final_message ? render_continued(input) : render_plain(input);
  }
  const std::string& source() const override { return source_; }
  const std::string& call_sample() const override { return probe_.call_sample; }
  const Capabilities& capabilities() const override { return probe_.capabilities; }

 private:
  Result<std::string> render_plain(const TemplateInput& input) const {
    TRY_ASSIGN(const Json variables, template_variables(input, probe_.style, bos_, eos_));
    return program_->render(variables, std::chrono::system_clock::to_time_t(input.now));
  }

  // As transformers does: everything is rendered, then cut after the last content. A template that trims contents has
  // trimmed the mark's space too; then the prompt ends without trailing space.
  Result<std::string> render_continued(const TemplateInput& input) const {
    if (input.messages.empty() || input.messages.back().role != "assistant" || !input.messages.back().content) {
      return Error(ErrorCode::kInvalid, "the message to be continued must be an assistant's, with content", "messages");
    }
    TemplateInput marked = input;
    marked.continue_final_message = false;
    marked.add_generation_prompt = false;
    *marked.messages.back().content += kContinueMark;
    TRY_ASSIGN(std::string text, render_plain(marked));
    const std::size_t at = text.rfind(trimmed_end(kContinueMark));
    if (at == std::string::npos) {
      return Error(ErrorCode::kInvalid, "the chat template does not show the content of the last message", "messages");
    }
    const bool untrimmed = text.compare(at, kContinueMark.size(), kContinueMark) == 0;
    text.resize(at);
    if (!untrimmed) text.resize(trimmed_end(text).size());
    return text;
  }

  const std::string source_, bos_, eos_;
  const std::unique_ptr<JinjaProgram> program_;
  const ProbeResult probe_;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string source, std::string bos, std::string eos,
                                                          const TemplateLimits& limits) {
  // Probing a hostile template must not take ten times the limit.
  TemplateLimits probe_limits = limits;
  probe_limits.max_render_ms = std::min(limits.max_render_ms, 200.0);
  probe_limits.max_output_bytes = std::min<std::size_t>(limits.max_output_bytes, 1u << 20);
  TRY_ASSIGN(const auto probe_program, JinjaProgram::parse(source, probe_limits));
  ProbeResult probe = probe_template(*probe_program, source, bos, eos);
  TRY_ASSIGN(auto program, JinjaProgram::parse(source, limits));
  return std::unique_ptr<ChatTemplate>(
      new JinjaTemplate(std::move(source), std::move(bos), std::move(eos), std::move(program), std::move(probe)));
}

std::string_view default_chat_template() {
  return "{% for message in messages %}"
         "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
         "{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

}  // namespace hocket
