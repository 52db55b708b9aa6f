#include "tokenizer/structure_tag.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tokenizer/schema_grammar.h"

namespace hocket {
namespace {

using Kind = Structure::Kind;

constexpr std::size_t kMaxParts = 2048;
constexpr std::string_view kGemmaQuote = "<|\"|>";

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalid, std::move(message));
}

class TagWriter {
 public:
  explicit TagWriter(const StructureChecks& checks) : checks_(checks) {}

  Result<Json> write(const Structure& s) {
    if (++n_parts_ > kMaxParts) return invalid(fmt::format("there are more than {} parts", kMaxParts));
    switch (s.kind) {
      case Kind::kText:
        return Json{{"type", "const_string"}, {"value", s.text}};
      case Kind::kJson: {
        TRY_ASSIGN(const std::string schema, checks_.schema(s.text));
        return grammar(schema_ebnf(schema));
      }
      case Kind::kGemma: {
        TRY_ASSIGN(const std::string schema, checks_.gemma_schema(s.text));
        return grammar(gemma_ebnf(schema));
      }
      case Kind::kGbnf: {
        TRY_ASSIGN(std::string ebnf, checks_.gbnf(s.text));
        return grammar(std::move(ebnf));
      }
      case Kind::kPattern: {
        TRY_ASSIGN(std::string pattern, checks_.pattern(s.text));
        return Json{{"type", "regex"}, {"pattern", std::move(pattern)}};
      }
      case Kind::kUntil: {
        if (s.text.empty()) return invalid("free text needs an end");
        Json any{{"type", "any_text"}, {"excludes", s.without}};
        return Json{{"type", "tag"}, {"begin", ""}, {"content", std::move(any)}, {"end", s.text}};
      }
      case Kind::kSequence:
        return list(s, "sequence");
      case Kind::kChoice:
        return list(s, "or");
      case Kind::kOptional:
        return around(s, "optional");
      case Kind::kSome:
        return around(s, "plus");
      case Kind::kAny:
        return around(s, "star");
      case Kind::kFree:
        return free(s);
    }
    return invalid("an unknown part");
  }

 private:
  static Json grammar(std::string ebnf) { return Json{{"type", "grammar"}, {"grammar", std::move(ebnf)}}; }

  Result<Json> list(const Structure& s, const char* type) {
    if (s.parts.empty()) return invalid("a part is empty");
    if (s.parts.size() == 1) return write(s.parts[0]);
    Json elements = Json::array();
    for (const Structure& part : s.parts) {
      TRY_ASSIGN(Json element, write(part));
      elements.push_back(std::move(element));
    }
    return Json{{"type", type}, {"elements", std::move(elements)}};
  }

  Result<Json> around(const Structure& s, const char* type) {
    if (s.parts.size() != 1) return invalid("a repeated part must be one");
    TRY_ASSIGN(Json content, write(s.parts[0]));
    return Json{{"type", type}, {"content", std::move(content)}};
  }

  Result<Json> free(const Structure& s) {
    if (s.triggers.empty() || s.triggers.size() != s.parts.size()) return invalid("each trigger needs a part");
    Json rules = Json::array();
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      if (s.triggers[i].empty()) return invalid("a trigger is empty");
      TRY_ASSIGN(Json content, write(s.parts[i]));
      rules.push_back(Json::array({s.triggers[i], std::move(content)}));
    }
    return Json{{"type", "dispatch"}, {"rules", std::move(rules)}, {"loop", !s.once}};
  }

  const StructureChecks& checks_;
  std::size_t n_parts_ = 0;
};

void collect(const Structure& s, std::vector<std::string_view>& out) {
  if (s.kind == Kind::kText || s.kind == Kind::kUntil) out.push_back(s.text);
  if (s.kind == Kind::kGemma) out.push_back(kGemmaQuote);
  for (const std::string& trigger : s.triggers) out.push_back(trigger);
  for (const Structure& part : s.parts) collect(part, out);
}

}  // namespace

Result<std::string> structural_tag(const Structure& structure, const StructureChecks& checks) {
  TRY_ASSIGN(Json format, TagWriter(checks).write(structure));
  return dump_json(Json{{"type", "structural_tag"}, {"format", std::move(format)}});
}

std::vector<std::string_view> literals_of(const Structure& structure) {
  std::vector<std::string_view> out;
  collect(structure, out);
  return out;
}

}  // namespace hocket
