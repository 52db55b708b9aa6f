// tokenizer/structure.h: what an answer is made of: literal text, JSON of a schema, free text, and ways to combine
// them.
//
// Tool calls are written with it: free text until a trigger, then literal pieces with arguments of a schema between.
// GrammarCompiler::structure() compiles it. Control tokens whose text occurs in the literals may be written; all others
// stay outside.
//
// Threads  plain values.
// Errors   none here; a schema that cannot be enforced is an error of the compiler.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hocket {

struct Structure {
  enum class Kind {
    kText,      // `text` as it is
    kJson,      // JSON of the schema `text`
    kGemma,     // an object of the schema `text` as gemma 4 writes it: {key:<|"|>value<|"|>,other:3}
    kGbnf,      // the GBNF grammar `text`
    kPattern,   // the regular expression `text`
    kUntil,     // any text without `without`, then `text`
    kSequence,  // all parts
    kChoice,    // one of the parts
    kOptional,  // the part or nothing
    kSome,      // the part, once or more
    kAny,       // the part, any number of times
    kFree,      // any text; where one of `triggers` was written, the part of the same index follows
  };
  Kind kind = Kind::kSequence;
  std::string text;
  std::vector<std::string> without;
  std::vector<std::string> triggers;
  bool once = false;  // kFree: the answer ends after the first triggered part
  std::vector<Structure> parts;

  static Structure of(Kind kind, std::string text) {
    Structure out;
    out.kind = kind;
    out.text = std::move(text);
    return out;
  }
  static Structure literal(std::string text) { return of(Kind::kText, std::move(text)); }
  static Structure json(std::string schema) { return of(Kind::kJson, std::move(schema)); }
  static Structure until(std::string end, std::vector<std::string> without = {}) {
    Structure out = of(Kind::kUntil, std::move(end));
    out.without = std::move(without);
    return out;
  }
  static Structure made_of(Kind kind, std::vector<Structure> parts) {
    Structure out;
    out.kind = kind;
    out.parts = std::move(parts);
    return out;
  }
  static Structure sequence(std::vector<Structure> parts) { return made_of(Kind::kSequence, std::move(parts)); }
  static Structure choice(std::vector<Structure> parts) { return made_of(Kind::kChoice, std::move(parts)); }
  static Structure optional(Structure part) { return made_of(Kind::kOptional, {std::move(part)}); }
  static Structure some(Structure part) { return made_of(Kind::kSome, {std::move(part)}); }
  static Structure any(Structure part) { return made_of(Kind::kAny, {std::move(part)}); }
  static Structure free(std::vector<std::string> triggers, std::vector<Structure> parts, bool once) {
    Structure out = made_of(Kind::kFree, std::move(parts));
    out.triggers = std::move(triggers);
    out.once = once;
    return out;
  }
};

}  // namespace hocket
