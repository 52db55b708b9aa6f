// tests/support/fake_chat_service.h: a ChatService without a model, for tests of what stands on it.
//
// By default a reply is the words of `text`, one event a word, `step` apart. A test may instead script every event, or
// look at the requests that arrive. Requests run side by side; each on the thread that pulls its reply.
//
// Threads  any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/model_host.h"

namespace hocket {

// One entry of a script: an event, or an error that ends the reply, due `after` the one before.
struct ScriptStep {
  std::variant<ReplyEvent, Error> what;
  std::chrono::milliseconds after{0};
};

class FakeReply final : public Reply {
 public:
  FakeReply(std::string id, std::vector<ScriptStep> script, std::shared_ptr<std::atomic<bool>> cancelled,
            std::function<void()> on_end)
      : id_(std::move(id)), script_(std::move(script)), cancelled_(std::move(cancelled)), on_end_(std::move(on_end)) {}
  ~FakeReply() override {
    if (at_ < script_.size()) cancelled_->store(true);
    on_end_();
  }
  const std::string& request_id() const override { return id_; }
  int64_t created() const override { return 1'700'000'000; }
  void cancel() override { cancelled_->store(true); }

  Result<std::optional<ReplyEvent>> next(std::chrono::milliseconds wait) override {
    const auto until = std::chrono::steady_clock::now() + wait;
    while (true) {
      if (cancelled_->load()) return Error(ErrorCode::kCancelled, "the request was canceled");
      const auto now = std::chrono::steady_clock::now();
      if (at_ < script_.size() && now >= due_ + script_[at_].after) {
        due_ = now;
        const ScriptStep& step = script_[at_++];
        if (const auto* error = std::get_if<Error>(&step.what)) return *error;
        return std::optional<ReplyEvent>(std::get<ReplyEvent>(step.what));
      }
      if (now >= until) return std::optional<ReplyEvent>();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  const std::string id_;
  const std::vector<ScriptStep> script_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  const std::function<void()> on_end_;
  std::size_t at_ = 0;
  std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::now();
};

class FakeChatService final : public ChatService {
 public:
  FakeChatService() {
    info_.model_id = "org/fake:1b";
    info_.aliases = {"org/fake:1b", "fake"};
    info_.model_path = "fake.gguf";
    info_.model.arch = "llama";
    info_.model.name = "Fake";
    info_.model.quantisation = "Q4_1";
    info_.model.n_vocab = 1000;
    info_.model.n_ctx_train = 4096;
    info_.n_ctx = 2048;
    info_.fingerprint = "fp_fake";
    info_.created = 1'600'000'000;
  }

  // What tests set before requests come.
  std::string text = "one two three";
  std::chrono::milliseconds step{0};
  std::function<std::vector<ScriptStep>(const ChatRequest&)> chat_script;
  std::function<std::vector<ScriptStep>(const CompletionRequest&)> completion_script;
  std::function<Result<EmbeddingResult>(const EmbeddingRequest&, CancelToken)> on_embed;
  std::optional<Error> refuse;  // chat() and complete() fail with it

  // What tests look at afterwards.
  std::vector<ChatRequest> chats() const { return locked(chats_); }
  std::vector<CompletionRequest> completions() const { return locked(completions_); }
  std::size_t n_active() const {
    const std::lock_guard lock(mutex_);
    return active_.size();
  }
  std::size_t n_cancelled() const { return n_cancelled_; }

  const ServiceInfo& info() const override { return info_; }
  ServiceInfo& editable_info() { return info_; }

  Result<std::unique_ptr<Reply>> chat(ChatRequest request) override {
    if (const auto refused = refusal()) return *refused;
    auto script = chat_script ? chat_script(request) : words(request.params.n);
    const std::string id = request.request_id;
    {
      const std::lock_guard lock(mutex_);
      chats_.push_back(std::move(request));
    }
    return start(id, std::move(script));
  }
  Result<std::unique_ptr<Reply>> complete(CompletionRequest request) override {
    if (const auto refused = refusal()) return *refused;
    auto script = completion_script ? completion_script(request)
                                    : words(static_cast<int>(request.prompts.size()) * request.params.n);
    const std::string id = request.request_id;
    {
      const std::lock_guard lock(mutex_);
      completions_.push_back(std::move(request));
    }
    return start(id, std::move(script));
  }
  Result<EmbeddingResult> embed(EmbeddingRequest request, CancelToken cancel) override {
    if (on_embed) return on_embed(request, cancel);
    EmbeddingResult result;
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
      result.vectors.push_back({0.5f, -0.25f, static_cast<float>(i)});
    result.n_prompt_tokens = 7;
    return result;
  }
  // One token a byte.
  Result<std::vector<TokenId>> tokenize(std::string_view s, const EncodeOptions& options) override {
    std::vector<TokenId> ids;
    if (options.add_special) ids.push_back(999);
    for (const char c : s) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  Result<std::string> detokenize(const std::vector<TokenId>& ids) override {
    std::string s;
    for (const TokenId id : ids) s += token_bytes(id);
    return s;
  }
  std::string token_bytes(TokenId id) const override { return id < 256 ? std::string(1, static_cast<char>(id)) : ""; }
  Result<std::string> apply_template(const ChatRequest& request) override {
    std::string s;
    for (const Message& m : request.messages) s += m.role + ":" + m.content.value_or("-") + ";";
    return s;
  }

  Result<void> cancel(std::string_view request_id) override {
    const std::lock_guard lock(mutex_);
    const auto it = active_.find(std::string(request_id));
    if (it == active_.end()) return Error(ErrorCode::kNotFound, "no such request");
    it->second->store(true);
    return {};
  }
  Result<void> acknowledge(std::string_view request_id, uint64_t sequence) override {
    return note("ack", request_id, sequence);
  }
  Result<void> pause(std::string_view request_id) override { return note("pause", request_id, 0); }
  Result<void> resume(std::string_view request_id) override { return note("resume", request_id, 0); }
  CacheReport cache() const override { return cache_; }
  CacheReport& editable_cache() { return cache_; }
  Result<void> clear_cache() override {
    cache_ = CacheReport();
    return {};
  }
  SessionStore& sessions() override { return *sessions_; }
  // "ack id 3", "pause id 0", …
  std::vector<std::string> notes() const { return locked(notes_); }
  std::vector<RequestStatus> status() const override {
    const std::lock_guard lock(mutex_);
    std::vector<RequestStatus> list;
    for (const auto& [id, flag] : active_) {
      RequestStatus status;
      status.request_id = id;
      status.phase = RequestPhase::kDecode;
      status.completion_tokens = 3;
      list.push_back(status);
    }
    return list;
  }
  ServiceMetrics metrics() const override { return metrics_; }
  ServiceMetrics& editable_metrics() { return metrics_; }
  void drain(std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    refuse = Error(ErrorCode::kBusy, "the server is shutting down");
    refuse->reason = "draining";
    ended_.wait_for(lock, limit, [this] { return active_.empty(); });
    for (auto& [id, flag] : active_) flag->store(true);
  }

  static DeltaEvent content(std::string s, std::size_t choice = 0) {
    DeltaEvent event;
    event.choice = choice;
    event.deltas.push_back({ReplyDelta::Kind::kContent, std::move(s), 0, "", ""});
    return event;
  }
  static ReplyDone done() {
    ReplyDone d;
    d.usage = {5, 3, 0, 2};
    d.timings.prefill_ms = 10;
    d.timings.decode_ms = 30;
    d.timings.prefill_tokens = 3;
    d.timings.decode_tokens = 3;
    d.timings.total_ms = 40;
    auto details = std::make_shared<ReplyDetails>();
    details->cache_status = CacheStatus::kPrefix;
    d.details = std::move(details);
    return d;
  }

 private:
  Result<void> note(const std::string& what, std::string_view request_id, uint64_t n) {
    const std::lock_guard lock(mutex_);
    if (!active_.contains(std::string(request_id))) {
      Error error(ErrorCode::kNotFound, "no such request", "request_id");
      error.reason = "request_not_found";
      return error;
    }
    notes_.push_back(what + " " + std::string(request_id) + " " + std::to_string(n));
    return {};
  }
  std::optional<Error> refusal() const {
    const std::lock_guard lock(mutex_);
    return refuse;
  }
  template <class T>
  std::vector<T> locked(const std::vector<T>& list) const {
    const std::lock_guard lock(mutex_);
    return list;
  }
  std::vector<ScriptStep> words(int n) const {
    std::vector<ScriptStep> script;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = text.find(' ', at + 1);
      if (end == std::string::npos) end = text.size();
      for (int c = 0; c < n; ++c) {
        ScriptStep& word = script.emplace_back();
        word.what = ReplyEvent(content(text.substr(at, end - at), static_cast<std::size_t>(c)));
        if (c == 0) word.after = step;
      }
      at = end;
    }
    for (int c = 0; c < n; ++c)
      script.push_back({ReplyEvent(ChoiceFinished{static_cast<std::size_t>(c), FinishReason::kStop, ""}), {}});
    script.push_back({ReplyEvent(done()), {}});
    return script;
  }
  Result<std::unique_ptr<Reply>> start(const std::string& id, std::vector<ScriptStep> script) {
    auto flag = std::make_shared<std::atomic<bool>>(false);
    const std::lock_guard lock(mutex_);
    active_[id] = flag;
    return std::unique_ptr<Reply>(std::make_unique<FakeReply>(id, std::move(script), flag, [this, id, flag] {
      const std::lock_guard inner(mutex_);
      if (flag->load()) ++n_cancelled_;
      if (const auto it = active_.find(id); it != active_.end() && it->second == flag) active_.erase(it);
      ended_.notify_all();
    }));
  }

  ServiceInfo info_;
  ServiceMetrics metrics_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> active_;
  std::vector<ChatRequest> chats_;
  std::vector<CompletionRequest> completions_;
  std::vector<std::string> notes_;
  CacheReport cache_;
  std::unique_ptr<SessionStore> sessions_ = *SessionStore::open({});
  std::atomic<std::size_t> n_cancelled_{0};
};

class FakeHost final : public ModelHost {
 public:
  explicit FakeHost(std::shared_ptr<ChatService> service) : ready_(ModelHost::of(std::move(service))) {}
  void set_state(State state) { state_ = state; }
  State state() const override { return state_; }
  float progress() const override { return 0.25f; }
  std::optional<Error> fault() const override {
    if (state_ != State::kFailed) return std::nullopt;
    return Error(ErrorCode::kBadModel, "the file is damaged", "blk.0.attn_q.weight");
  }
  std::vector<ModelStatus> models() override {
    std::vector<ModelStatus> list = ready_->models();
    for (ModelStatus& model : list) {
      if (state_ == State::kReady) continue;
      model.service = nullptr;
      model.state = state_ == State::kLoading ? ModelStatus::State::kLoading : ModelStatus::State::kFailed;
      model.progress = progress();
      model.fault = fault();
    }
    return list;
  }
  Result<std::shared_ptr<ChatService>> use(std::string_view model, const std::function<bool()>& gone) override {
    if (state_ == State::kReady) return ready_->use(model, gone);
    if (state_ == State::kFailed) return *fault();
    Error loading(ErrorCode::kBusy, "the model is loading");
    loading.reason = "loading";
    return loading;
  }
  std::vector<std::shared_ptr<ChatService>> loaded() const override {
    if (state_ != State::kReady) return {};
    return ready_->loaded();
  }
  Result<std::shared_ptr<void>> reserve(const std::string& what, std::size_t n_bytes,
                                        const std::function<bool()>& gone) override {
    return ready_->reserve(what, n_bytes, gone);
  }
  void drain(std::chrono::milliseconds limit) override { ready_->drain(limit); }

 private:
  const std::unique_ptr<ModelHost> ready_;
  std::atomic<State> state_{State::kReady};
};

}  // namespace hocket
