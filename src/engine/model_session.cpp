#include "engine/model_session.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/generation.h"

namespace hocket {

Result<std::unique_ptr<ModelSession>> ModelSession::open(const ModelSessionOptions& options) {
  auto session = std::make_unique<ModelSession>();
  GgufOptions file_options;
  file_options.use_mmap = options.use_mmap;
  TRY_ASSIGN(session->file_, GgufFile::open(options.path, file_options));
  TRY_ASSIGN(session->model_, LanguageModel::load(session->file_, options.load));
  TRY(session->set_runner(options.runner));
  return session;
}

Result<void> ModelSession::set_runner(const RunnerOptions& options) {
  runner_.reset();
  TRY_ASSIGN(runner_, LmRunner::create(*model_, options));
  return {};
}

Result<void> ModelSession::evaluate(const std::vector<TokenId>& tokens, bool every_row,
                                    const std::function<Result<void>(std::size_t, std::span<const float>)>& on_row) {
  if (tokens.empty()) return Error(ErrorCode::kInvalid, "there are no tokens to evaluate", "tokens");
  for (const TokenId id : tokens) {
    if (id < 0 || static_cast<std::size_t>(id) >= model_->n_vocab()) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("token {} is not in the vocabulary (ids 0…{})", id, model_->n_vocab() - 1), "tokens");
    }
  }
  if (tokens.size() > runner_->options().n_ctx) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} tokens do not fit into a context of {}", tokens.size(), runner_->options().n_ctx),
                 "tokens");
  }
  runner_->memory().clear(0);
  PrefillHooks hooks;
  hooks.every_row = every_row;
  hooks.on_rows = [&](std::size_t first, std::size_t n_rows) -> Result<void> {
    for (std::size_t i = 0; i < n_rows; ++i) TRY(on_row(first + i, runner_->output(i)));
    return {};
  };
  return prefill(*runner_, 0, tokens, hooks, CancelToken());
}

}  // namespace hocket
