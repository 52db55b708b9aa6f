#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace hocket {
namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Log, ReopensItsFileAfterARotation) {
  const std::string path = ::testing::TempDir() + "hocket-log-" + std::to_string(getpid());
  LogOptions options;
  options.file = path;
  options.format = LogFormat::kJson;
  ASSERT_TRUE(configure_log(options).ok());
  log_info("first");
  ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
  log_info("second");
  ASSERT_TRUE(reopen_log().ok());
  log_info("third \"quoted\"\n");
  EXPECT_NE(contents(path + ".1").find("first"), std::string::npos);
  EXPECT_NE(contents(path + ".1").find("second"), std::string::npos);
  const std::string now = contents(path);
  EXPECT_EQ(now.find("second"), std::string::npos);
  // In the same format as before.
  EXPECT_NE(now.find(R"("message":"third \"quoted\"\u000a"})"), std::string::npos) << now;
  std::remove(path.c_str());
  std::remove((path + ".1").c_str());
}

TEST(Log, AFileThatCannotBeWrittenIsAnError) {
  LogOptions options;
  options.file = "/dev/null/hocket.log";
  const auto configured = configure_log(options);
  ASSERT_FALSE(configured.ok());
  EXPECT_EQ(configured.error().code, ErrorCode::kIo);
  EXPECT_EQ(configured.error().param, "log-file");
}

}  // namespace
}  // namespace hocket
