// chat/tool_syntax/call_layout.h: calls made of fixed pieces with a name and arguments between them, and finding out of
// which pieces a template makes them.
//
//   lead  name  name_close  arguments  trail        <tool_call><function=add>…</function></tool_call>
//
// A reader takes the pieces with any white space between; a writer uses the template's own.
//
// Threads  plain values, pure functions.
// Errors   none: a text without a known layout gives nullopt.
// Cost     linear in the text, times the number of layouts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hocket {

// The exact text of a call. A piece that is the same for all calls of an answer is `shared`.
struct CallSpelling {
  std::string shared_lead, lead, name_close, trail, separator, shared_trail;
  // Tagged arguments: key_open key value_open value value_close, `between` after each, `last` after all.
  std::string key_open, value_open, value_close, between, last;
};

struct CallLayout {
  enum class Arguments {
    kJson,
    kTagged,  // key_open key value_open value value_close, and so on; strings without quotes
    kGemma,   // {key:<|"|>value<|"|>,other:3}
    kPython,  // (key='value', other=3)
  };
  Arguments arguments = Arguments::kJson;
  std::vector<std::string> lead, name_close, trail;
  std::size_t n_shared_lead = 0, n_shared_trail = 0;  // the first of lead, the last of trail
  bool numbered = false;                              // functions.name:0
  std::string key_open, value_close;
  std::vector<std::string> value_open;
  bool padded = false;  // a line break on both sides of a value
  CallSpelling spelling;
};

// What the probing conversation calls: two tools, of which the first gets all arguments.
struct CallProbe {
  std::string first, second;  // names of tools
  std::string text_key, text_value, number_key, number_value;
};

// The layout of the calls in a rendered conversation.
std::optional<CallLayout> find_call_layout(std::string_view rendered, const CallProbe& probe);

const std::vector<CallLayout>& known_call_layouts();

// For templates that do not print calls: the first layout whose first and last piece are known, to a vocabulary say.
template <class Known>
std::optional<CallLayout> find_call_layout_if(const Known& known) {
  for (const CallLayout& layout : known_call_layouts()) {
    if (known(layout.lead.front()) && known(layout.trail.back())) return layout;
  }
  return std::nullopt;
}

}  // namespace hocket
