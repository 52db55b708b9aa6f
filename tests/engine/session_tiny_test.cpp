// Sessions of real architectures: what a new process restores from the disk gives the tokens of a cold run.
#include <gtest/gtest.h>

#include "engine/service_fixture.h"
#include "support/temp_folder.h"

namespace hocket::testing_engine {
namespace {

class SessionTinyTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<ChatService> load(bool on_disk) const {
    ServiceOptions options;
    options.model_path = std::string(HOCKET_TEST_DATA) + "/lm/" + GetParam() + ".gguf";
    options.runner.n_ctx = 256;
    options.runner.n_batch = 16;
    options.runner.n_threads = 1;
    options.runner.cache_k = options.runner.cache_v = CacheType::kF32;
    options.n_chunk = 16;
    options.n_parallel = 2;
    if (on_disk) options.sessions.folder = (folder.path() / "sessions").string();
    auto service = ChatService::load(options);
    EXPECT_TRUE(service.ok()) << (service.ok() ? "" : service.error().message);
    return service.ok() ? *service : nullptr;
  }
  static CompletionRequest prompt(const std::string& end, const std::string& session) {
    CompletionRequest request;
    request.prompts.emplace_back("hello world, this is a test of twenty and more tokens in several batches" + end);
    request.params.max_tokens = 12;
    request.params.temperature = 0.0f;
    request.params.logprobs = true;
    request.params.ignore_eos = true;
    request.serving.session_id = session;
    return request;
  }
  static Collected answer(ChatService& service, const CompletionRequest& request) {
    Collected got = collect(service.complete(request));
    EXPECT_FALSE(got.error) << got.error->message;
    return got;
  }
  // What comes back into a windowed cache lies in other cells, and ggml's sums follow the cells.
  static void expect_equal(const Collected& a, const Collected& b) {
    const double most = std::string(GetParam()) == "gemma3" ? 1e-4 : 0;
    ASSERT_EQ(a.only().logprobs.size(), b.only().logprobs.size());
    for (std::size_t i = 0; i < a.only().logprobs.size(); ++i) {
      EXPECT_EQ(a.only().logprobs[i].token.id, b.only().logprobs[i].token.id) << i;
      EXPECT_NEAR(a.only().logprobs[i].token.logprob, b.only().logprobs[i].token.logprob, most) << i;
    }
  }
  TempFolder folder;
};

TEST_P(SessionTinyTest, ARestartChangesNothing) {
  const Collected first_cold = answer(*load(false), prompt("", ""));
  const Collected next_cold = answer(*load(false), prompt(" and on it goes", ""));
  const Collected other_cold = answer(*load(false), prompt(" but not so", ""));
  {
    const auto service = load(true);
    ASSERT_NE(service, nullptr);
    const Collected got = answer(*service, prompt("", "s"));
    ASSERT_TRUE(got.end.details->session);
    EXPECT_EQ(got.end.details->session->stored, "disk");
    expect_equal(got, first_cold);
    ASSERT_TRUE(service->sessions().fork("", "s", "fork").ok());
  }
  {
    const auto service = load(true);
    const Collected again = answer(*service, prompt("", "s"));
    EXPECT_EQ(again.usage.cached_tokens, again.usage.prompt_tokens);
    EXPECT_TRUE(again.end.details->from_session);
    expect_equal(again, first_cold);
  }
  const auto service = load(true);
  const Collected next = answer(*service, prompt(" and on it goes", "s"));
  EXPECT_TRUE(next.end.details->from_session);
  EXPECT_GT(next.usage.cached_tokens, 0u);
  expect_equal(next, next_cold);
  ASSERT_TRUE(service->clear_cache().ok());
  const Collected other = answer(*service, prompt(" but not so", "fork"));
  EXPECT_TRUE(other.end.details->from_session);
  expect_equal(other, other_cold);
}

INSTANTIATE_TEST_SUITE_P(Architectures, SessionTinyTest,
                         ::testing::Values("llama", "gemma3", "qwen35", "bailingmoe3", "lfm2", "ds2"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace hocket::testing_engine
