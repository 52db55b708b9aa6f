// music/planner/metadata_machine.h: holds the language model to "bpm:120\ncaption:…\n…</think>" while it plans a song.
//
// Fields come in a fixed order; each has a name, which is forced token by token, and a value out of a list, or free
// text for the caption. Values that the request gives are forced.
//
// Owns     rules: trees of values, shared by all machines. A machine copies in O(1) but for its path.
// Threads  rules are const; a machine by one user.
// Errors   build(): those of the tokenizer.
// Cost     rules: tokenising about 1000 values once a file.
// Source   ace-step.md §6.5.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "music/request.h"
#include "music/tokens.h"

namespace hocket {

enum class MetadataField { kBpm, kCaption, kDuration, kKeyscale, kLanguage, kTimesignature };
inline constexpr std::size_t kMetadataFields = 6;

class MetadataRules {
 public:
  static Result<std::shared_ptr<const MetadataRules>> build(const MusicTokenizer& tokenizer);

  // The next tokens that lead to a value, by what has been said of it.
  using ValueTree = std::map<std::vector<TokenId>, std::set<TokenId>>;

  const std::vector<TokenId>& name(MetadataField field) const { return names_[static_cast<std::size_t>(field)]; }
  const ValueTree& values(MetadataField field) const { return values_[static_cast<std::size_t>(field)]; }
  TokenId newline() const { return newline_; }
  const MusicTokenizer& tokenizer() const { return *tokenizer_; }
  // The tokens of a value with the newline behind it.
  Result<std::vector<TokenId>> value_tokens(MetadataField field, const std::string& value) const;

 private:
  const MusicTokenizer* tokenizer_ = nullptr;  // of the same PlannerModel
  std::array<std::vector<TokenId>, kMetadataFields> names_;
  std::array<ValueTree, kMetadataFields> values_;
  TokenId newline_ = kNoToken;
};

struct ForcedMetadata {
  std::array<std::string, kMetadataFields> values;  // "" is free
  bool skip_caption = false;

  // What a request gives.
  static ForcedMetadata of(const MusicRequest& request, bool skip_caption);
};

class MetadataMachine {
 public:
  static Result<MetadataMachine> start(std::shared_ptr<const MetadataRules> rules, const ForcedMetadata& forced);

  // What may come next. kListed: only allowed(); kText: everything but audio codes; kFree: the machine is done.
  enum class Scope { kListed, kText, kFree };
  Scope scope() const;
  const std::set<TokenId>& allowed() const { return allowed_; }
  // Forbids everything else in a row of logits.
  void mask(std::span<float> logits) const;
  void accept(TokenId token);

 private:
  enum class State { kName, kValue, kForced, kCaption, kEnd, kDone };

  void enter_name(std::size_t field);
  void enter_value(std::size_t field);
  void accept_caption(TokenId token);
  void update_allowed();

  std::shared_ptr<const MetadataRules> rules_;
  std::array<std::vector<TokenId>, kMetadataFields> forced_;
  bool skip_caption_ = false;
  State state_ = State::kName;
  std::size_t field_ = 0;
  std::size_t at_ = 0;         // in the name or the forced value
  std::vector<TokenId> path_;  // of the value
  bool line_begins_ = false;   // in the caption
  bool naming_ = false;        // a line of the caption that may turn out to be the next field
  std::string named_;
  std::set<TokenId> allowed_;
};

}  // namespace hocket
