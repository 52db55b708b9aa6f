#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/log_tail.h"

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

TEST(Log, RemembersItsLastLines) {
  const auto all = log_lines_after(0, std::chrono::milliseconds(0));
  const uint64_t before = all.empty() ? 0 : all.back().number;
  EXPECT_TRUE(log_lines_after(before, std::chrono::milliseconds(1)).empty());
  std::thread writer([] { log_info("one\nline"); });
  const auto one = log_lines_after(before, std::chrono::seconds(20));
  writer.join();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].number, before + 1);
  EXPECT_NE(one[0].text.find("line"), std::string::npos);
  EXPECT_EQ(one[0].text.find('\n'), std::string::npos);
  for (int i = 0; i < 600; ++i) log_info("{}", i);
  const auto many = log_lines_after(0, std::chrono::milliseconds(0));
  ASSERT_EQ(many.size(), 512U);
  EXPECT_EQ(many.back().number, before + 601);
  EXPECT_NE(many.back().text.find("599"), std::string::npos);
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
