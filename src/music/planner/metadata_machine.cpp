#include "music/planner/metadata_machine.h"

#include <algorithm>
#include <string_view>

namespace hocket {
namespace {

constexpr std::array<std::string_view, kMetadataFields> kNames{"bpm",      "caption",  "duration",
                                                               "keyscale", "language", "timesignature"};
constexpr std::array<std::string_view, 51> kLanguages{
    "ar", "az", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he",  "hi", "hr",
    "ht", "hu", "id", "is", "it", "ja", "ko", "la", "lt", "ms", "ne", "nl", "no", "pa", "pl",  "pt", "ro",
    "ru", "sa", "sk", "sr", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "yue", "zh", "unknown"};
constexpr float kForbidden = -1e9f;

std::vector<std::string> numbers(int first, int last) {
  std::vector<std::string> values;
  for (int i = first; i <= last; ++i) values.push_back(std::to_string(i));
  return values;
}

std::vector<std::string> legal_values(MetadataField field) {
  switch (field) {
    case MetadataField::kBpm:
      return numbers(30, 300);
    case MetadataField::kDuration:
      return numbers(10, 600);
    case MetadataField::kTimesignature:
      return {"2", "3", "4", "6"};
    case MetadataField::kLanguage:
      return {kLanguages.begin(), kLanguages.end()};
    case MetadataField::kKeyscale: {
      std::vector<std::string> values;
      for (const char* note : {"A", "B", "C", "D", "E", "F", "G"})
        for (const char* accidental : {"", "#", "b", "\u266F", "\u266D"})
          for (const char* scale : {" major", " minor"}) values.push_back(std::string(note) + accidental + scale);
      return values;
    }
    case MetadataField::kCaption:
      break;
  }
  return {};
}

MetadataField field_at(std::size_t i) {
  return static_cast<MetadataField>(i);
}

}  // namespace

Result<std::vector<TokenId>> MetadataRules::value_tokens(MetadataField field, const std::string& value) const {
  const std::string name = std::string(kNames[static_cast<std::size_t>(field)]) + ":";
  const std::vector<TokenId>& prefix = names_[static_cast<std::size_t>(field)];
  TRY_ASSIGN(std::vector<TokenId> whole, tokenizer_->encode(name + value + "\n"));
  if (whole.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), whole.begin()))
    return std::vector<TokenId>(whole.begin() + static_cast<std::ptrdiff_t>(prefix.size()), whole.end());
  return tokenizer_->encode(value + "\n");
}

Result<std::shared_ptr<const MetadataRules>> MetadataRules::build(const MusicTokenizer& tokenizer) {
  auto rules = std::make_shared<MetadataRules>();
  rules->tokenizer_ = &tokenizer;
  TRY_ASSIGN(const std::vector<TokenId> newline, tokenizer.encode("\n"));
  if (newline.empty()) return Error(ErrorCode::kBadModel, "the tokenizer has no newline", "tokenizer.ggml.tokens");
  rules->newline_ = newline.front();
  for (std::size_t i = 0; i < kMetadataFields; ++i) {
    TRY_ASSIGN(rules->names_[i], tokenizer.encode(std::string(kNames[i]) + ":"));
    if (rules->names_[i].empty())
      return Error(ErrorCode::kBadModel, "the tokenizer cannot write field names", "tokenizer.ggml.tokens");
    for (const std::string& value : legal_values(field_at(i))) {
      TRY_ASSIGN(const std::vector<TokenId> tokens, rules->value_tokens(field_at(i), value));
      std::vector<TokenId> path;
      for (const TokenId token : tokens) {
        rules->values_[i][path].insert(token);
        path.push_back(token);
      }
    }
  }
  return std::shared_ptr<const MetadataRules>(std::move(rules));
}

ForcedMetadata ForcedMetadata::of(const MusicRequest& request, bool skip_caption) {
  ForcedMetadata forced;
  const auto set = [&](MetadataField field, std::string value) {
    forced.values[static_cast<std::size_t>(field)] = std::move(value);
  };
  if (request.bpm > 0) set(MetadataField::kBpm, std::to_string(request.bpm));
  if (request.duration > 0) set(MetadataField::kDuration, std::to_string(static_cast<int>(request.duration)));
  set(MetadataField::kKeyscale, request.keyscale);
  if (request.vocal_language != "unknown") set(MetadataField::kLanguage, request.vocal_language);
  set(MetadataField::kTimesignature, request.timesignature);
  forced.skip_caption = skip_caption;
  return forced;
}

Result<MetadataMachine> MetadataMachine::start(std::shared_ptr<const MetadataRules> rules,
                                               const ForcedMetadata& forced) {
  MetadataMachine machine;
  machine.rules_ = std::move(rules);
  machine.skip_caption_ = forced.skip_caption;
  for (std::size_t i = 0; i < kMetadataFields; ++i)
    if (!forced.values[i].empty()) {
      TRY_ASSIGN(machine.forced_[i], machine.rules_->value_tokens(field_at(i), forced.values[i]));
    }
  machine.enter_name(0);
  machine.update_allowed();
  return machine;
}

void MetadataMachine::enter_name(std::size_t field) {
  if (field == static_cast<std::size_t>(MetadataField::kCaption) && skip_caption_) ++field;
  field_ = field;
  at_ = 0;
  state_ = field < kMetadataFields ? State::kName : State::kEnd;
}

void MetadataMachine::enter_value(std::size_t field) {
  field_ = field;
  at_ = 0;
  path_.clear();
  if (!forced_[field].empty()) {
    state_ = State::kForced;
  } else if (field == static_cast<std::size_t>(MetadataField::kCaption)) {
    state_ = State::kCaption;
    line_begins_ = naming_ = false;
    named_.clear();
  } else {
    state_ = State::kValue;
  }
}

MetadataMachine::Scope MetadataMachine::scope() const {
  if (state_ == State::kDone) return Scope::kFree;
  return state_ == State::kCaption ? Scope::kText : Scope::kListed;
}

void MetadataMachine::update_allowed() {
  allowed_.clear();
  switch (state_) {
    case State::kName:
      allowed_ = {rules_->name(field_at(field_))[at_]};
      break;
    case State::kForced:
      allowed_ = {forced_[field_][at_]};
      break;
    case State::kValue: {
      const auto& tree = rules_->values(field_at(field_));
      const auto next = tree.find(path_);
      allowed_ = next != tree.end() ? next->second : std::set<TokenId>{rules_->newline()};
      break;
    }
    case State::kEnd:
      allowed_ = {kEndThink};
      break;
    case State::kCaption:
    case State::kDone:
      break;
  }
}

void MetadataMachine::accept(TokenId token) {
  switch (state_) {
    case State::kName:
      if (++at_ == rules_->name(field_at(field_)).size()) enter_value(field_);
      break;
    case State::kForced:
      if (++at_ == forced_[field_].size()) enter_name(field_ + 1);
      break;
    case State::kValue:
      if (token == rules_->newline()) {
        enter_name(field_ + 1);
      } else {
        path_.push_back(token);
      }
      break;
    case State::kCaption:
      accept_caption(token);
      break;
    case State::kEnd:
      state_ = State::kDone;
      break;
    case State::kDone:
      break;
  }
  update_allowed();
}

// A line of the caption that does not go on with a space or a tab begins the next field, which the model chooses.
void MetadataMachine::accept_caption(TokenId token) {
  const std::string text = rules_->tokenizer().piece(token);
  if (line_begins_ && !naming_) naming_ = text.empty() || (text[0] != ' ' && text[0] != '\t');
  line_begins_ = token == rules_->newline();
  if (!naming_) return;
  named_ += text;
  const std::size_t colon = named_.find(':');
  if (colon == std::string::npos) return;
  std::string name = named_.substr(0, colon);
  while (!name.empty() && (name.back() == ' ' || name.back() == '\t' || name.back() == '\n' || name.back() == '\r'))
    name.pop_back();
  for (std::size_t i = static_cast<std::size_t>(MetadataField::kDuration); i < kMetadataFields; ++i)
    if (name == kNames[i]) return enter_value(i);
}

void MetadataMachine::mask(std::span<float> logits) const {
  switch (scope()) {
    case Scope::kFree:
      return;
    case Scope::kText:
      for (auto i = static_cast<std::size_t>(kFirstAudioCode); i < logits.size(); ++i) logits[i] = kForbidden;
      return;
    case Scope::kListed:
      break;
  }
  auto next = allowed_.begin();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (next != allowed_.end() && static_cast<std::size_t>(*next) == i) {
      ++next;
    } else {
      logits[i] = kForbidden;
    }
  }
}

}  // namespace hocket
