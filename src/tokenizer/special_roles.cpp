#include "tokenizer/special_roles.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace hocket {
namespace {

using Role = TokenId SpecialTokens::*;

struct RoleKey {
  std::string_view name;  // after "tokenizer.ggml."
  Role role;
};

// An older spelling comes before the present one, which wins.
constexpr RoleKey kRoleKeys[] = {
    {"bos_token_id", &SpecialTokens::bos},
    {"eos_token_id", &SpecialTokens::eos},
    {"eot_token_id", &SpecialTokens::eot},
    {"eom_token_id", &SpecialTokens::eom},
    {"unknown_token_id", &SpecialTokens::unk},
    {"seperator_token_id", &SpecialTokens::sep},  // as the format spells it
    {"padding_token_id", &SpecialTokens::pad},
    {"mask_token_id", &SpecialTokens::mask},
    {"prefix_token_id", &SpecialTokens::fim_prefix},
    {"suffix_token_id", &SpecialTokens::fim_suffix},
    {"middle_token_id", &SpecialTokens::fim_middle},
    {"fim_pre_token_id", &SpecialTokens::fim_prefix},
    {"fim_suf_token_id", &SpecialTokens::fim_suffix},
    {"fim_mid_token_id", &SpecialTokens::fim_middle},
    {"fim_pad_token_id", &SpecialTokens::fim_pad},
    {"fim_rep_token_id", &SpecialTokens::fim_rep},
    {"fim_sep_token_id", &SpecialTokens::fim_sep},
};

struct RoleTexts {
  Role role;
  std::vector<std::string_view> texts;  // best first
};

const std::vector<RoleTexts>& role_texts() {
  static const std::vector<RoleTexts> table = {
      {&SpecialTokens::eot,
       {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
        "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}},
      {&SpecialTokens::eom, {"<|eom_id|>"}},
      {&SpecialTokens::fim_prefix,
       {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
        "<|prefix|>"}},
      {&SpecialTokens::fim_suffix,
       {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
        "<|suffix|>"}},
      {&SpecialTokens::fim_middle,
       {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
        "<|middle|>"}},
      {&SpecialTokens::fim_pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
      {&SpecialTokens::fim_rep, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
      {&SpecialTokens::fim_sep, {"<|file_sep|>"}},
  };
  return table;
}

constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
};

std::string key_of(std::string_view name) {
  return fmt::format("tokenizer.ggml.{}", name);
}

TokenId in_vocabulary(TokenId id, const Vocabulary& vocabulary) {
  return id >= 0 && static_cast<std::size_t>(id) < vocabulary.size() ? id : kNoToken;
}

// Returns the roles that the file itself names.
Result<void> read_role_keys(const Metadata& metadata, const SpecialTokens& defaults, Vocabulary& vocabulary) {
  SpecialTokens& special = vocabulary.special;
  special = defaults;
  for (const Role role : {&SpecialTokens::bos, &SpecialTokens::eos, &SpecialTokens::unk, &SpecialTokens::pad})
    special.*role = in_vocabulary(special.*role, vocabulary);
  for (const RoleKey& entry : kRoleKeys) {
    const std::string key = key_of(entry.name);
    if (!metadata.has(key)) continue;
    TRY_ASSIGN(const int64_t id, metadata.integer(key));
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size()) {
      log_warn("{} = {} is outside the vocabulary of {} tokens and is ignored", key, id, vocabulary.size());
      continue;
    }
    special.*entry.role = static_cast<TokenId>(id);
  }
  TRY_ASSIGN(special.add_bos, metadata.boolean_or(key_of("add_bos_token"), defaults.add_bos));
  TRY_ASSIGN(special.add_eos, metadata.boolean_or(key_of("add_eos_token"), defaults.add_eos));
  return {};
}

void find_roles_by_text(Vocabulary& vocabulary) {
  SpecialTokens& special = vocabulary.special;
  for (const RoleTexts& entry : role_texts()) {
    if (special.*entry.role != kNoToken) continue;
    TokenId best = kNoToken;
    for (const std::string_view text : entry.texts) {
      const TokenId id = vocabulary.find(text);
      if (id == kNoToken) continue;
      // Chat models keep the base model's end of text as EOS beside their own end of turn: prefer the other one.
      if (best == kNoToken || (best == special.eos && id != special.eos && entry.role == &SpecialTokens::eot))
        best = id;
    }
    if (best == kNoToken) continue;
    special.*entry.role = best;
    vocabulary.types[static_cast<std::size_t>(best)] = TokenType::kControl;
  }
}

void retype(Vocabulary& vocabulary, std::string_view text, TokenType type) {
  if (const TokenId id = vocabulary.find(text); id != kNoToken) vocabulary.types[static_cast<std::size_t>(id)] = type;
}

void collect_end_of_generation(Vocabulary& vocabulary) {
  const SpecialTokens& special = vocabulary.special;
  std::set<TokenId> ends{special.eos, special.eot, special.eom, special.fim_pad, special.fim_rep, special.fim_sep};
  ends.erase(kNoToken);
  for (const std::string_view text : kEndTexts) {
    const TokenId id = vocabulary.find(text);
    if (id == kNoToken) continue;
    ends.insert(id);
    vocabulary.types[static_cast<std::size_t>(id)] = TokenType::kControl;
  }
  const auto ends_with = [&](std::string_view text) {
    const TokenId id = vocabulary.find(text);
    return id != kNoToken && ends.count(id) > 0;
  };
  const bool harmony = ends_with("<|return|>") && ends_with("<|call|>");  // gpt-oss
  const bool solar = ends_with("<|calls|>") && ends_with("<|flush|>");
  if (harmony || solar) {
    // There "<|end|>" closes one of several messages of a turn, and the reply parser must see it.
    ends.erase(vocabulary.find("<|end|>"));
    retype(vocabulary, "<|end|>", TokenType::kUserDefined);
  }
  if (harmony) {
    for (const std::string_view text : {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"})
      retype(vocabulary, text, TokenType::kUserDefined);
  }
  if (ends_with("<|tool_response>")) {
    // In gemma 4 "</s>" is an HTML tag, and plain text at that.
    ends.erase(vocabulary.find("</s>"));
    retype(vocabulary, "</s>", TokenType::kNormal);
  }
  vocabulary.end_of_generation.assign(ends.begin(), ends.end());
}

Result<void> read_suppressed(const Metadata& metadata, Vocabulary& vocabulary) {
  const std::string key = key_of("suppress_tokens");
  TRY_ASSIGN(const std::vector<int64_t>* stored, metadata.integers(key));
  if (stored == nullptr) return {};
  std::set<TokenId> ids;
  for (const int64_t id : *stored) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size())
      log_warn("{} names {}, which is outside the vocabulary and is ignored", key, id);
    else
      ids.insert(static_cast<TokenId>(id));
  }
  vocabulary.suppressed.assign(ids.begin(), ids.end());
  return {};
}

}  // namespace

Result<void> assign_special_roles(const Metadata& metadata, const SpecialTokens& defaults, Vocabulary& vocabulary) {
  TRY(read_role_keys(metadata, defaults, vocabulary));
  find_roles_by_text(vocabulary);
  collect_end_of_generation(vocabulary);
  return read_suppressed(metadata, vocabulary);
}

}  // namespace hocket
