// tokenizer/grammar.h: compiles grammars for one vocabulary, through XGrammar.
//
// Sources: GBNF text, a JSON schema, "any JSON object", a regular expression, or a structure that puts such parts,
// literal text and free text together (tokenizer/structure.h).
//
// Owns     a cache of compiled grammars, bounded in bytes.
// Threads  any; compiling different grammars runs in parallel.
// Errors   kInvalid with `param` as given by the caller and a message that says what is not supported or which limit
// was
//          passed. A schema keyword that cannot be honoured is an error, never ignored.
// Cost     compiling is bounded by GrammarLimits; a cached grammar costs a hash look-up.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/structure.h"
#include "tokenizer/token_constraint.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct GrammarLimits {
  std::size_t max_source_bytes = 256u << 10;
  std::size_t max_depth = 32;  // nesting of a schema
  std::size_t max_rules = 50'000;
  double max_compile_ms = 10'000;
  std::size_t max_cache_bytes = 256u << 20;
};

class GrammarCompiler {
 public:
  // `tokenizer` must outlive the compiler and everything it made. n_vocab ≥ tokenizer.size() is the width of the
  // logits.
  static Result<std::unique_ptr<GrammarCompiler>> create(const Tokenizer& tokenizer, std::size_t n_vocab,
                                                         const GrammarLimits& limits = {});
  virtual ~GrammarCompiler() = default;

  virtual Result<std::unique_ptr<TokenConstraint>> gbnf(std::string_view source, std::string param) = 0;
  virtual Result<std::unique_ptr<TokenConstraint>> json_schema(std::string_view schema_json, std::string param) = 0;
  virtual Result<std::unique_ptr<TokenConstraint>> json_object() = 0;
  virtual Result<std::unique_ptr<TokenConstraint>> regex(std::string_view pattern, std::string param) = 0;
  virtual Result<std::unique_ptr<TokenConstraint>> structure(const Structure& structure, std::string param) = 0;
};

// Lets everything pass until `marker` (for example "</think>") was written, then enforces `inner`.
std::unique_ptr<TokenConstraint> constraint_after_marker(const Tokenizer& tokenizer, std::string marker,
                                                         std::unique_ptr<TokenConstraint> inner);

}  // namespace hocket
