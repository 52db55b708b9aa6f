// chat/tool_syntax/literal_scanner.h: arguments as literals of another language, written as JSON.
//
//   gemma 4:  {city:<|"|>Zürich<|"|>,days:3}          →   {"city": "Zürich", "days": 3}
//   Python:   (city='Zürich', days=3, exact=True)     →   {"city": "Zürich", "days": 3, "exact": true}
//
// Words that are neither numbers nor constants become strings. In Python a quote that no comma or bracket follows is
// part of its string: templates print strings without escapes.
//
// Threads  one user at a time.
// Errors   kBroken.
// Cost     constant per character; nesting to 256.
#pragma once

#include <string>

#include "chat/tool_syntax/value_scanner.h"

namespace hocket {

class LiteralScanner : public ValueScanner {
 public:
  enum class Language { kGemma, kPython };
  explicit LiteralScanner(Language language) : language_(language) {}

  Status feed(char c, std::string& copy) override;
  void finish(std::string& copy) override;
  std::string take_unread() override;

 private:
  enum class Want { kStart, kKeyOrClose, kKey, kColon, kValueOrClose, kValue, kNext };
  enum class In { kNothing, kWord, kQuote, kString, kEscape, kStringEnd };
  Status outside(char c, std::string& copy);
  Status begin_item(char c, std::string& copy);
  Status open(char c, std::string& copy);
  Status close(char c, std::string& copy);
  Status in_word(char c, std::string& copy);
  Status in_quote(char c, std::string& copy);
  Status in_string(char c, std::string& copy);
  Status in_escape(char c, std::string& copy);
  Status after_quote(char c, std::string& copy);
  void end_word(std::string& copy);
  void end_item();
  bool at_key() const { return want_ == Want::kKey || want_ == Want::kKeyOrClose; }

  const Language language_;
  Want want_ = Want::kStart;
  In in_ = In::kNothing;
  std::string closers_;  // of the open brackets
  bool comma_ = false;   // one is due before the next item
  std::string word_;     // a word, the beginning of a quote, an escape, or space after a quote
  char quote_ = 0;       // '\0': <|"|>
};

}  // namespace hocket
