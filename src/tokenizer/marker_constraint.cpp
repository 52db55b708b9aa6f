// Free text up to a marker, then a constraint: lets a model finish thinking before its answer must follow a grammar.
#include <algorithm>
#include <utility>

#include "tokenizer/grammar.h"

namespace hocket {
namespace {

class MarkerConstraint final : public TokenConstraint {
 public:
  MarkerConstraint(const Tokenizer& tokenizer, std::string marker, std::unique_ptr<TokenConstraint> inner)
      : tokenizer_(&tokenizer), marker_(std::move(marker)), inner_(std::move(inner)), seen_(marker_.empty()) {}

  Result<bool> allowed(std::span<uint32_t> mask) override {
    return seen_ ? inner_->allowed(mask) : Result<bool>(false);
  }

  Result<void> accept(TokenId id) override {
    if (seen_) return inner_->accept(id);
    if (!tokenizer_->valid_id(id)) return Error(ErrorCode::kInternal, "a token that does not exist", "grammar");
    // Only as much of the past as could still be the beginning of the marker.
    tail_ += tokenizer_->piece(id, true);
    if (const auto at = tail_.find(marker_); at != std::string::npos) {
      seen_ = true;
      tail_.clear();
    } else if (tail_.size() >= marker_.size()) {
      tail_.erase(0, tail_.size() - (marker_.size() - 1));
    }
    return {};
  }

  bool complete() const override { return seen_ && inner_->complete(); }

  std::unique_ptr<TokenConstraint> clone() const override {
    auto copy = std::make_unique<MarkerConstraint>(*tokenizer_, marker_, inner_->clone());
    copy->tail_ = tail_;
    copy->seen_ = seen_;
    return copy;
  }

 private:
  const Tokenizer* tokenizer_;
  std::string marker_;
  std::unique_ptr<TokenConstraint> inner_;
  std::string tail_;
  bool seen_;
};

}  // namespace

std::unique_ptr<TokenConstraint> constraint_after_marker(const Tokenizer& tokenizer, std::string marker,
                                                         std::unique_ptr<TokenConstraint> inner) {
  return std::make_unique<MarkerConstraint>(tokenizer, std::move(marker), std::move(inner));
}

}  // namespace hocket
