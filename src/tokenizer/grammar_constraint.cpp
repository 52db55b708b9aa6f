#include "tokenizer/grammar_constraint.h"

#include <dlpack/dlpack.h>
#include <fmt/format.h>
#include <xgrammar/matcher.h>

#include <algorithm>
#include <vector>

namespace hocket {
namespace {

Error matcher_error(const char* what) {
  return Error(ErrorCode::kInternal, fmt::format("the grammar matcher failed: {}", what), "grammar");
}

class GrammarConstraint final : public TokenConstraint {
 public:
  explicit GrammarConstraint(const xgrammar::CompiledGrammar& grammar)
      : matcher_(grammar, std::nullopt, grammar.GetTokenizerInfo().GetStopTokenIds().empty()),
        mask_(static_cast<std::size_t>(xgrammar::GetBitmaskSize(grammar.GetTokenizerInfo().GetVocabSize()))) {
    for (const int32_t id : matcher_.GetStopTokenIds()) {
      if (stop_bits_.empty()) stop_bits_.resize(mask_.size());
      stop_bits_[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
    }
    if (stop_bits_.empty()) stop_bits_.resize(mask_.size());
  }
  GrammarConstraint(const GrammarConstraint& other)
      : matcher_(other.matcher_.Fork()),
        mask_(other.mask_),
        stop_bits_(other.stop_bits_),
        has_mask_(other.has_mask_),
        is_masked_(other.is_masked_),
        is_over_(other.is_over_),
        has_complete_(other.has_complete_),
        is_complete_(other.is_complete_) {}

  Result<bool> allowed(std::span<uint32_t> mask) override {
    if (mask.size() < mask_.size()) return matcher_error("the mask is too small");
    if (is_over_) {
      std::fill(mask.begin(), mask.end(), 0);
      return true;
    }
    TRY(fill());
    if (!is_masked_) return false;
    std::copy(mask_.begin(), mask_.end(), mask.begin());
    std::fill(mask.begin() + static_cast<std::ptrdiff_t>(mask_.size()), mask.end(), 0);
    return true;
  }

  Result<void> accept(TokenId id) override {
    bool is_known = id >= 0 && static_cast<std::size_t>(id) / 32 < mask_.size();
    // The matcher would refuse as well, but log it.
    if (is_known && has_mask_ && is_masked_)
      is_known = (mask_[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
    has_mask_ = has_complete_ = false;
    try {
      if (is_known && !is_over_ && matcher_.AcceptToken(id)) {
        is_over_ = matcher_.IsTerminated();
        return {};
      }
    } catch (const std::exception& e) {
      is_over_ = true;
      return matcher_error(e.what());
    }
    is_over_ = true;
    return Error(ErrorCode::kInternal, fmt::format("token {} is not allowed by the grammar", id), "grammar");
  }

  bool complete() const override {
    if (is_over_) return true;
    if (has_complete_) return is_complete_;
    has_complete_ = true;
    is_complete_ = nothing_but_the_end();
    return is_complete_;
  }

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<GrammarConstraint>(*this); }

 private:
  bool nothing_but_the_end() const {
    try {
      if (!matcher_.IsCompleted()) return false;
    } catch (const std::exception&) {
      return false;  // allowed() will report it
    }
    if (!fill() || !is_masked_) return false;
    for (std::size_t i = 0; i < mask_.size(); ++i) {
      if ((mask_[i] & ~stop_bits_[i]) != 0) return false;
    }
    return true;
  }

  // The mask of the present state, once.
  Result<void> fill() const {
    if (has_mask_) return {};
    DLTensor tensor{};
    int64_t shape = static_cast<int64_t>(mask_.size());
    tensor.data = mask_.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &shape;
    try {
      is_masked_ = matcher_.FillNextTokenBitmask(&tensor);
    } catch (const std::exception& e) {
      return matcher_error(e.what());
    }
    has_mask_ = true;
    return {};
  }

  mutable xgrammar::GrammarMatcher matcher_;  // filling a mask does not change its state, but is not const
  mutable std::vector<uint32_t> mask_;
  std::vector<uint32_t> stop_bits_;
  mutable bool has_mask_ = false, is_masked_ = false;
  bool is_over_ = false;
  mutable bool has_complete_ = false, is_complete_ = false;
};

}  // namespace

Result<std::unique_ptr<TokenConstraint>> make_grammar_constraint(const xgrammar::CompiledGrammar& grammar) {
  try {
    return std::unique_ptr<TokenConstraint>(std::make_unique<GrammarConstraint>(grammar));
  } catch (const std::exception& e) {
    return matcher_error(e.what());
  }
}

}  // namespace hocket
