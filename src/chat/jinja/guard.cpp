#include "chat/jinja/guard.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/jinja/builtins.h"

namespace hocket::chat_jinja {

namespace jj = jinja;
using jj::statement_ptr;
using jj::statements;
using jj::value;

namespace {

// A value that is already known, as an operand.
struct Held : jj::expression {
  value v;
  explicit Held(value known) : v(std::move(known)) {}
  value execute_impl(jj::context&) const override { return v; }
};
statement_ptr held(value v) {
  return std::make_unique<Held>(std::move(v));
}

struct Guard : jj::expression {
  std::string label;  // the node it stands for, in messages
  explicit Guard(const jj::statement& original) : label(original.type()) { pos = original.pos; }
  std::string type() const override { return label; }
};

value note(value made) {
  Budget::current().made(made);
  return made;
}

std::vector<value> evaluate(const statements& args, jj::context& ctx) {
  std::vector<value> out;
  for (const statement_ptr& arg : args) out.push_back(arg->execute(ctx));
  return out;
}
statements hold(const std::vector<value>& values) {
  statements out;
  for (const value& v : values) out.push_back(held(v));
  return out;
}

struct GuardedBinary : Guard {
  jj::token op;
  statement_ptr left, right;
  explicit GuardedBinary(jj::binary_expression& n)
      : Guard(n), op(n.op), left(std::move(n.left)), right(std::move(n.right)) {}

  value execute_impl(jj::context& ctx) const override {
    Budget& budget = Budget::current();
    budget.tick();
    const value l = left->execute(ctx), r = right->execute(ctx);
    if (op.value == "*" && (is_text(l) || is_text(r))) {
      const value& text = is_text(l) ? l : r;
      const value& count = is_text(l) ? r : l;
      const double n = is_int(count) ? static_cast<double>(count->as_int()) : 0;
      budget.check_bytes(
          n * (64.0 * static_cast<double>(text->val_str.parts.size()) + static_cast<double>(text->val_str.length())));
    } else if (!(op.value == "+" && is_container(l) && is_container(r)) &&
               (is_container(l) || op.value == "~" || op.value == "+")) {
      Weight weight;  // printed, or compared all through
      budget.weigh(l, weight);
      budget.weigh(r, weight);
    }
    jj::binary_expression inner(op, held(l), held(r));
    return note(inner.execute_impl(ctx));
  }
};

struct GuardedCall : Guard {
  statement_ptr callee;
  statements args;
  explicit GuardedCall(jj::call_expression& n) : Guard(n), callee(std::move(n.callee)), args(std::move(n.args)) {}

  value execute_impl(jj::context& ctx) const override {
    Budget& budget = Budget::current();
    budget.tick();
    std::vector<value> values = evaluate(args, ctx);
    value function = callee->execute(ctx);
    if (const auto* known = jj::cast_val<jj::value_func>(function)) {
      if (known->arg0 || jj::global_builtins().count(known->name)) {
        if (auto done = before_builtin(known->name, known->arg0, values)) return note(*done);
      }
    }
    jj::call_expression inner(held(function), hold(values));
    return note(inner.execute_impl(ctx));
  }
};

// A filter or a test with its operand; `body` instead of `operand` for a filter block.
template <class Node>
struct GuardedApplication : Guard {
  statement_ptr operand;
  std::string name;
  std::optional<statements> args;  // absent: written without parentheses
  bool negate = false;

  GuardedApplication(const jj::statement& original, statement_ptr subject, statement_ptr& function)
      : Guard(original), operand(std::move(subject)) {
    if (auto* call = jj::cast_stmt<jj::call_expression>(function)) {
      const auto* id = jj::cast_stmt<jj::identifier>(call->callee);
      if (!id) refuse("expected the name of a filter or test");
      name = id->val;
      args = std::move(call->args);
    } else {
      const auto* id = jj::cast_stmt<jj::identifier>(function);
      if (!id) refuse("expected the name of a filter or test");
      name = id->val;
    }
  }

  value execute_impl(jj::context& ctx) const override {
    Budget& budget = Budget::current();
    budget.tick();
    value subject = operand->execute(ctx);
    std::vector<value> values;
    if (args) values = evaluate(*args, ctx);
    if (auto done = before_builtin(name, subject, values)) return note(*done);
    statement_ptr function = std::make_unique<jj::identifier>(name);
    if (args) function = std::make_unique<jj::call_expression>(std::move(function), hold(values));
    if constexpr (std::is_same_v<Node, jj::test_expression>) {
      return Node(held(subject), negate, std::move(function)).execute_impl(ctx);
    } else {
      return note(Node(held(subject), std::move(function)).execute_impl(ctx));
    }
  }
};

// The text of some statements, as an operand.
struct Body : jj::expression {
  statements body;
  value execute_impl(jj::context& ctx) const override {
    auto all = jj::mk_val<jj::value_array>();
    for (const statement_ptr& p : body) all->push_back(p->execute(ctx));
    return jj::runtime::gather_string_parts(all);
  }
};

// Runs what it wraps and looks at the result.
struct Checked : Guard {
  enum class Use { kValue, kOutput, kKey, kBound, kMacro };
  statement_ptr inner;
  Use use;
  Checked(statement_ptr node, Use u) : Guard(*node), inner(std::move(node)), use(u) {}

  value execute_impl(jj::context& ctx) const override {
    Budget& budget = Budget::current();
    budget.tick();
    value v = inner->execute(ctx);
    Weight weight;
    switch (use) {
      case Use::kValue:
        budget.made(v);
        break;
      case Use::kOutput:
        budget.weigh(v, weight);
        budget.charge(weight.n_bytes);
        break;
      case Use::kKey:
        if (is_container(v)) budget.weigh(v, weight);
        break;
      case Use::kBound:
        if (is_int(v) && std::abs(static_cast<double>(v->as_int())) > static_cast<double>(kMaxInteger))
          refuse("index too large");
        break;
      case Use::kMacro: {
        const auto* function = jj::cast_val<jj::value_func>(v);
        if (function && (function->arg0 || jj::global_builtins().count(function->name))) refuse("call needs a macro");
        break;
      }
    }
    return v;
  }
};

struct Tick : jj::statement {
  value execute_impl(jj::context&) const override {
    Budget::current().tick();
    return jj::mk_val<jj::value_undefined>();
  }
};

// ---- putting the guards in

void guard(statement_ptr& p);

void guard_all(statements& list) {
  for (statement_ptr& p : list) guard(p);
}

// Default values of a macro's parameters; the parameters themselves must stay what they are.
void guard_parameters(statements& list) {
  for (statement_ptr& p : list) {
    if (auto* keyword = jj::cast_stmt<jj::keyword_argument_expression>(p)) guard(keyword->val);
  }
}

void guard_body(statements& body) {
  for (statement_ptr& p : body) {
    guard(p);
    if (dynamic_cast<jj::expression*>(p.get())) p = std::make_unique<Checked>(std::move(p), Checked::Use::kOutput);
  }
  auto tick = std::make_unique<Tick>();
  tick->pos = body.empty() ? 0 : body.front()->pos;
  body.insert(body.begin(), std::move(tick));
}

void check(statement_ptr& p, Checked::Use use) {
  if (p) p = std::make_unique<Checked>(std::move(p), use);
}

template <class Node>
void guard_application(statement_ptr& p, statement_ptr& subject, statement_ptr& function, bool negate) {
  guard(subject);
  if (auto* call = jj::cast_stmt<jj::call_expression>(function)) guard_all(call->args);
  auto guarded = std::make_unique<GuardedApplication<Node>>(*p, std::move(subject), function);
  guarded->negate = negate;
  p = std::move(guarded);
}

void guard(statement_ptr& p) {
  if (!p) return;
  if (auto* n = jj::cast_stmt<jj::binary_expression>(p)) {
    guard(n->left);
    guard(n->right);
    if (n->op.value != "and" && n->op.value != "or") p = std::make_unique<GuardedBinary>(*n);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::call_expression>(p)) {
    guard(n->callee);
    guard_all(n->args);
    p = std::make_unique<GuardedCall>(*n);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::filter_expression>(p)) {
    guard_application<jj::filter_expression>(p, n->operand, n->filter, false);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::test_expression>(p)) {
    guard_application<jj::test_expression>(p, n->operand, n->test, n->negate);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::filter_statement>(p)) {
    guard_body(n->body);
    auto body = std::make_unique<Body>();
    body->pos = n->pos;
    body->body = std::move(n->body);
    statement_ptr subject = std::move(body);
    guard_application<jj::filter_expression>(p, subject, n->filter, false);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::member_expression>(p)) {
    guard(n->object);
    if (!n->computed) return;
    if (auto* slice = jj::cast_stmt<jj::slice_expression>(n->property)) {
      for (statement_ptr* bound : {&slice->start_expr, &slice->stop_expr, &slice->step_expr}) {
        guard(*bound);
        check(*bound, Checked::Use::kBound);
      }
      check(p, Checked::Use::kValue);
    } else {
      guard(n->property);
      check(n->property, Checked::Use::kKey);
    }
    return;
  }
  if (auto* n = jj::cast_stmt<jj::array_literal>(p)) {
    guard_all(n->val);
    check(p, Checked::Use::kValue);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::tuple_literal>(p)) {
    guard_all(n->val);
    check(p, Checked::Use::kValue);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::object_literal>(p)) {
    for (auto& [key, item] : n->val) {
      guard(key);
      check(key, Checked::Use::kKey);
      guard(item);
    }
    check(p, Checked::Use::kValue);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::unary_expression>(p)) {
    guard(n->argument);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::ternary_expression>(p)) {
    guard(n->condition);
    guard(n->true_expr);
    guard(n->false_expr);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::select_expression>(p)) {
    guard(n->lhs);
    guard(n->test);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::keyword_argument_expression>(p)) {
    guard(n->val);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::if_statement>(p)) {
    guard(n->test);
    guard_body(n->body);
    guard_body(n->alternate);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::for_statement>(p)) {
    guard(n->iterable);
    if (auto* select = jj::cast_stmt<jj::select_expression>(n->iterable)) check(select->test, Checked::Use::kKey);
    guard_body(n->body);
    guard_body(n->default_block);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::set_statement>(p)) {
    if (auto* member = jj::cast_stmt<jj::member_expression>(n->assignee)) guard(member->object);
    guard(n->val);
    guard_body(n->body);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::macro_statement>(p)) {
    guard_parameters(n->args);
    guard_body(n->body);
    return;
  }
  if (auto* n = jj::cast_stmt<jj::call_statement>(p)) {
    guard_parameters(n->caller_args);
    guard_body(n->body);
    if (auto* call = jj::cast_stmt<jj::call_expression>(n->call)) {
      guard_all(call->args);
      check(call->callee, Checked::Use::kMacro);
    }
  }
}

}  // namespace

void guard_program(jinja::program& program) {
  guard_body(program.body);
}

}  // namespace hocket::chat_jinja
