#include "tokenizer/grammar.h"

#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/compile_workers.h"
#include "tokenizer/gbnf.h"
#include "tokenizer/grammar_cache.h"
#include "tokenizer/grammar_constraint.h"
#include "tokenizer/json_schema_check.h"
#include "tokenizer/json_schema_facts.h"
#include "tokenizer/schema_grammar.h"
#include "tokenizer/structure_tag.h"

namespace hocket {
namespace {

constexpr int kCompileSlots = 2;
constexpr std::size_t kMaxVocabularies = 4;  // with different control tokens made visible
constexpr std::size_t kMaxRegexBytes = 4096;
// Any JSON object; XGrammar's own JSON grammar would also allow other values, and white space without end.
constexpr std::string_view kAnyObject = R"({"type":"object","additionalProperties":true})";

std::size_t count_rules(const xgrammar::Grammar& grammar) {
  const std::string text = grammar.ToString();
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

xgrammar::Grammar schema_grammar(const std::string& schema) {
  return xgrammar::Grammar::FromEBNF(schema_ebnf(schema), "root");
}

// XGrammar's messages begin with a time, a source path and a stack; people need the last part.
std::string plain_message(std::string text) {
  if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
  if (const auto at = text.find(".cc:"); at != std::string::npos) {
    if (const auto colon = text.find(": ", at); colon != std::string::npos) text.erase(0, colon + 2);
  }
  return text;
}

class XGrammarCompiler final : public GrammarCompiler {
 public:
  XGrammarCompiler(const Tokenizer& tokenizer, std::size_t n_vocab, const GrammarLimits& limits)
      : tokenizer_(&tokenizer),
        n_vocab_(n_vocab),
        limits_(limits),
        cache_(std::make_shared<GrammarCache>(limits.max_cache_bytes)),
        workers_(kCompileSlots) {}

  Result<std::unique_ptr<TokenConstraint>> gbnf(std::string_view source, std::string param) override {
    TRY(check_size(source, limits_.max_source_bytes, "the grammar", param));
    auto ebnf = gbnf_to_ebnf(source, limits_.max_rules);
    if (!ebnf) return about(std::move(ebnf).error(), "grammar ", param);
    return constraint("gbnf", std::move(ebnf).value(), {}, param,
                      [](const std::string& text) { return xgrammar::Grammar::FromEBNF(text, "root"); });
  }

  Result<std::unique_ptr<TokenConstraint>> json_schema(std::string_view schema_json, std::string param) override {
    TRY_ASSIGN(std::string schema, checked_schema(schema_json, param));
    return constraint("schema", std::move(schema), {}, param, schema_grammar);
  }

  Result<std::unique_ptr<TokenConstraint>> json_object() override {
    return constraint("schema", std::string(kAnyObject), {}, "response_format", schema_grammar);
  }

  Result<std::unique_ptr<TokenConstraint>> regex(std::string_view pattern, std::string param) override {
    TRY(check_size(pattern, kMaxRegexBytes, "the regular expression", param));
    if (auto checked = check_pattern(pattern); !checked) return about(std::move(checked).error(), "", param);
    return constraint("regex", std::string(pattern), {}, param,
                      [](const std::string& text) { return xgrammar::Grammar::FromRegex(text); });
  }

  Result<std::unique_ptr<TokenConstraint>> structure(const Structure& structure, std::string param) override {
    const StructureChecks checks{
        [&](const std::string& text) { return checked_schema(text, param, SchemaNotation::kJson); },
        [&](const std::string& text) { return checked_schema(text, param, SchemaNotation::kGemma); },
        [&](const std::string& text) -> Result<std::string> {
          TRY(check_size(text, limits_.max_source_bytes, "the grammar", param));
          return gbnf_to_ebnf(text, limits_.max_rules);
        },
        [](const std::string& text) -> Result<std::string> {
          TRY(check_pattern(text));
          return text;
        }};
    try {
      auto tag = structural_tag(structure, checks);
      if (!tag) return about(std::move(tag).error(), "", param);
      return constraint("structure", std::move(tag).value(), visible_control_tokens(structure), param,
                        [](const std::string& json) {
                          auto made = xgrammar::Grammar::FromStructuralTag(json);
                          if (auto* error = std::get_if<xgrammar::StructuralTagError>(&made)) {
                            std::visit([](const auto& e) -> void { throw e; }, *error);
                          }
                          return std::get<xgrammar::Grammar>(made);
                        });
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInvalid, plain_message(e.what()), param);
    }
  }

 private:
  using MakeGrammar = std::function<xgrammar::Grammar(const std::string&)>;

  static Error about(Error error, std::string_view prefix, const std::string& param) {
    error.message = fmt::format("{}{}", prefix, error.message);
    error.param = param;
    return error;
  }

  static Result<void> check_size(std::string_view text, std::size_t max, std::string_view what,
                                 const std::string& param) {
    if (text.size() > max)
      return Error(ErrorCode::kInvalid, fmt::format("{} has more than {} bytes", what, max), param);
    if (text.empty()) return Error(ErrorCode::kInvalid, fmt::format("{} is empty", what), param);
    if (!is_valid_utf8(text) || text.find('\0') != std::string_view::npos)
      return Error(ErrorCode::kInvalid, fmt::format("{} is not text in UTF-8", what), param);
    return {};
  }

  Result<std::string> checked_schema(std::string_view schema_json, const std::string& param,
                                     SchemaNotation notation = SchemaNotation::kJson) const {
    TRY(check_size(schema_json, limits_.max_source_bytes, "the schema", param));
    auto parsed = parse_json(schema_json, JsonLimits{limits_.max_depth, 100'000});
    if (!parsed) return about(std::move(parsed).error(), "schema: ", param);
    auto checked = checked_json_schema(std::move(parsed).value(), notation);
    if (!checked) return about(std::move(checked).error(), "", param);
    return checked;
  }

  // Control tokens are outside every grammar, except those that the literals are written with.
  std::vector<TokenId> visible_control_tokens(const Structure& structure) const {
    const std::vector<std::string_view> literals = literals_of(structure);
    std::vector<TokenId> ids;
    for (TokenId id = 0; tokenizer_->valid_id(id); ++id) {
      if (tokenizer_->type(id) != TokenType::kControl || tokenizer_->is_end_of_generation(id)) continue;
      const std::string piece = tokenizer_->piece(id, true);
      if (piece.empty()) continue;
      const bool used = std::any_of(literals.begin(), literals.end(),
                                    [&](std::string_view text) { return text.find(piece) != std::string_view::npos; });
      if (used) ids.push_back(id);
    }
    return ids;
  }

  Result<xgrammar::TokenizerInfo> vocabulary(const std::vector<TokenId>& visible) {
    const std::lock_guard lock(vocabularies_mutex_);
    if (const auto found = vocabularies_.find(visible); found != vocabularies_.end()) return found->second;
    std::vector<std::string> pieces(tokenizer_->size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      // XGrammar takes a token without bytes for a special one and never allows it.
      const TokenType type = tokenizer_->type(id);
      const bool usable = type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kByte;
      if (std::binary_search(visible.begin(), visible.end(), id)) {
        pieces[i] = tokenizer_->piece(id, true);
      } else if (usable && !tokenizer_->is_end_of_generation(id)) {
        pieces[i] = tokenizer_->piece(id);
      }
    }
    const std::vector<TokenId>& stops = tokenizer_->end_of_generation();
    try {
      xgrammar::TokenizerInfo info(pieces, xgrammar::VocabType::RAW, static_cast<int>(n_vocab_),
                                   std::vector<int32_t>(stops.begin(), stops.end()));
      if (vocabularies_.size() >= kMaxVocabularies) {
        // Keeps the plain one, which is the first in order.
        vocabularies_.erase(std::prev(vocabularies_.end()));
      }
      return vocabularies_.emplace(visible, std::move(info)).first->second;
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInternal, fmt::format("the vocabulary cannot be used for grammars: {}", e.what()));
    }
  }

  Result<std::unique_ptr<TokenConstraint>> constraint(std::string_view kind, std::string source,
                                                      const std::vector<TokenId>& visible, const std::string& param,
                                                      MakeGrammar make) {
    const std::string key = fmt::format("{}\n{}\n{}", kind, fmt::join(visible, ","), source);
    if (const auto known = cache_->find(key)) return make_grammar_constraint(*known);
    TRY_ASSIGN(const xgrammar::TokenizerInfo info, vocabulary(visible));

    struct Outcome {
      std::optional<xgrammar::CompiledGrammar> grammar;
      std::string error;
    };
    const auto outcome = std::make_shared<Outcome>();
    auto job = [outcome, info, key, source = std::move(source), make = std::move(make), cache = cache_,
                max_rules = limits_.max_rules] {
      try {
        const xgrammar::Grammar grammar = make(source);
        if (count_rules(grammar) > max_rules) {
          outcome->error = fmt::format("the grammar has more than {} rules", max_rules);
          return;
        }
        const int n_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
        outcome->grammar = xgrammar::GrammarCompiler(info, n_threads, false).CompileGrammar(grammar);
        cache->insert(key, *outcome->grammar);
      } catch (const std::exception& e) {
        outcome->error = plain_message(e.what());
        if (outcome->error.empty()) outcome->error = "the grammar cannot be compiled";
      }
    };
    if (auto ran = workers_.run(std::move(job), limits_.max_compile_ms); !ran) {
      Error error = std::move(ran).error();
      if (error.code == ErrorCode::kTimeout) error.code = ErrorCode::kInvalid;  // the source is what is wrong
      return about(std::move(error), "", param);
    }
    if (!outcome->grammar) return Error(ErrorCode::kInvalid, outcome->error, param);
    return make_grammar_constraint(*outcome->grammar);
  }

  const Tokenizer* tokenizer_;
  std::size_t n_vocab_;
  GrammarLimits limits_;
  std::mutex vocabularies_mutex_;
  std::map<std::vector<TokenId>, xgrammar::TokenizerInfo> vocabularies_;
  std::shared_ptr<GrammarCache> cache_;  // a late job still fills it
  CompileWorkers workers_;
};

}  // namespace

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const Tokenizer& tokenizer, std::size_t n_vocab,
                                                                 const GrammarLimits& limits) {
  if (n_vocab < tokenizer.size()) {
    return Error(ErrorCode::kInternal, fmt::format("{} logits for {} tokens", n_vocab, tokenizer.size()), "n_vocab");
  }
  return std::unique_ptr<GrammarCompiler>(std::make_unique<XGrammarCompiler>(tokenizer, n_vocab, limits));
}

}  // namespace hocket
