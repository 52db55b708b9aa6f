// A host that loads in the background.
#include "engine/chat_service.h"

#include <gtest/gtest.h>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

TEST(ServiceHost, AFailedLoadIsReported) {
  ServiceOptions options;
  options.model_path = "/nonexistent/model.gguf";
  const auto host = ServiceHost::start(options);
  const auto result = host->wait();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(host->state(), ServiceHost::State::kFailed);
  EXPECT_EQ(host->service().error().message, result.error().message);
}

TEST(ServiceHost, MayBeDroppedWhileLoading) {
  ServiceOptions options;
  options.model_path = "/nonexistent/model.gguf";
  for (int i = 0; i < 20; ++i) ServiceHost::start(options).reset();
}

class HostOfService : public ServiceTest {};

TEST_F(HostOfService, IsReadyAtOnce) {
  start_saying("ok");
  const auto host = ServiceHost::of(service);
  EXPECT_EQ(host->state(), ServiceHost::State::kReady);
  EXPECT_EQ(host->progress(), 1.0f);
  ASSERT_TRUE(host->service().ok());
  EXPECT_EQ((*host->wait())->info().model_id, "fake");
}

}  // namespace
}  // namespace hocket::testing_engine
