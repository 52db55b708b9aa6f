#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

std::string DetokenizeStream::push(TokenId id) {
  pending_ += tokenizer_->piece(id, special_);
  const std::size_t n_open = incomplete_utf8_tail(pending_);
  std::string out = repair_utf8(std::string_view(pending_).substr(0, pending_.size() - n_open));
  pending_.erase(0, pending_.size() - n_open);
  return out;
}

std::string DetokenizeStream::finish() {
  std::string out;
  if (!pending_.empty()) append_utf8(out, 0xFFFD);
  pending_.clear();
  return out;
}

}  // namespace hocket
