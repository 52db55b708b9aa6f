#include "chat/jinja/shape.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace hocket::chat_jinja {
namespace {

using jinja::token;

constexpr std::size_t kMaxNesting = 96;  // open blocks (an elif counts as one), open brackets
constexpr std::size_t kMaxChain = 600;   // tokens since the last comma, over all open brackets: bounds the tree's depth

class ShapeCheck {
 public:
  std::optional<Defect> run(const std::vector<token>& tokens) {
    for (std::size_t i = 0; i < tokens.size() && !defect_; ++i) step(tokens, i);
    if (!defect_ && in_tag_) fail(tag_pos_, "this tag is not closed");
    if (!defect_ && !blocks_.empty()) fail(blocks_.back().pos, fmt::format("\"{}\" without end", blocks_.back().name));
    return defect_;
  }

 private:
  struct Block {
    std::string name;
    std::size_t pos;
    std::size_t n_levels;
  };

  void fail(std::size_t pos, std::string message) { defect_ = Defect{pos, std::move(message)}; }

  void step(const std::vector<token>& tokens, std::size_t i) {
    const token& t = tokens[i];
    switch (t.t) {
      case token::text:
      case token::comment:
        return;
      case token::open_statement:
      case token::open_expression:
        if (in_tag_) return fail(t.pos, "a tag inside a tag");
        in_tag_ = true;
        tag_pos_ = t.pos;
        chain_.assign(1, 0);
        n_chain_ = 0;
        closers_.clear();
        keyword_.clear();
        assigns_ = false;
        if (t.t == token::open_statement && i + 1 < tokens.size() && tokens[i + 1].t == token::identifier) {
          keyword_ = tokens[i + 1].value;
        }
        return;
      case token::close_statement:
      case token::close_expression:
        if (!in_tag_ || !closers_.empty()) return fail(t.pos, "unbalanced bracket");
        in_tag_ = false;
        return close_tag();
      default:
        break;
    }
    if (!in_tag_) return fail(t.pos, fmt::format("unexpected \"{}\"", t.value));
    expression_token(t);
  }

  void expression_token(const token& t) {
    switch (t.t) {
      case token::open_paren:
        return open(t, token::close_paren);
      case token::open_square_bracket:
        return open(t, token::close_square_bracket);
      case token::open_curly_bracket:
        return open(t, token::close_curly_bracket);
      case token::close_paren:
      case token::close_square_bracket:
      case token::close_curly_bracket:
        if (closers_.empty() || closers_.back() != t.t) return fail(t.pos, "unbalanced bracket");
        closers_.pop_back();
        n_chain_ -= chain_.back();
        chain_.pop_back();
        break;
      case token::comma:
        n_chain_ -= chain_.back();
        chain_.back() = 0;
        return;
      case token::equals:
        if (closers_.empty()) assigns_ = true;
        break;
      default:
        break;
    }
    ++chain_.back();
    if (++n_chain_ > kMaxChain) fail(t.pos, "an expression is too long");
  }

  void open(const token& t, token::type closer) {
    if (closers_.size() >= kMaxNesting) return fail(t.pos, fmt::format("brackets nested deeper than {}", kMaxNesting));
    closers_.push_back(closer);
    chain_.push_back(0);
  }

  void close_tag() {
    static const std::set<std::string_view> kBlocks{"if", "for", "macro", "call", "filter"};
    static const std::set<std::string_view> kInside{"elif", "else"};
    static const std::set<std::string_view> kSingle{"set", "break", "continue", "generation", "endgeneration"};
    if (keyword_.empty()) return;
    if (kBlocks.count(keyword_) || (keyword_ == "set" && !assigns_)) {
      blocks_.push_back({keyword_, tag_pos_, 1});
      return deepen();
    }
    if (kInside.count(keyword_)) {
      const bool fits =
          !blocks_.empty() && (blocks_.back().name == "if" || (blocks_.back().name == "for" && keyword_ == "else"));
      if (!fits) return fail(tag_pos_, fmt::format("\"{}\" without its block", keyword_));
      if (keyword_ == "else") return;
      ++blocks_.back().n_levels;
      return deepen();
    }
    if (keyword_.starts_with("end") && !kSingle.count(keyword_)) {
      if (blocks_.empty() || blocks_.back().name != std::string_view(keyword_).substr(3)) {
        const std::string open = blocks_.empty() ? "no block" : fmt::format("\"{}\"", blocks_.back().name);
        return fail(tag_pos_, fmt::format("\"{}\" where {} is open", keyword_, open));
      }
      n_levels_ -= blocks_.back().n_levels;
      blocks_.pop_back();
      return;
    }
    if (!kSingle.count(keyword_)) fail(tag_pos_, fmt::format("unknown statement \"{}\"", keyword_));
  }

  void deepen() {
    if (++n_levels_ > kMaxNesting) fail(tag_pos_, fmt::format("blocks nested deeper than {}", kMaxNesting));
  }

  std::optional<Defect> defect_;
  bool in_tag_ = false;
  std::size_t tag_pos_ = 0;
  std::string keyword_;   // of a statement tag
  bool assigns_ = false;  // the tag has an = outside brackets
  std::vector<token::type> closers_;
  std::vector<std::size_t> chain_{0};  // per open bracket
  std::size_t n_chain_ = 0;
  std::vector<Block> blocks_;
  std::size_t n_levels_ = 0;
};

}  // namespace

std::optional<Defect> find_defect(const std::vector<token>& tokens) {
  return ShapeCheck().run(tokens);
}

}  // namespace hocket::chat_jinja
