// GET /metrics: the format of Prometheus, line by line.
#include <regex>
#include <sstream>

#include "http/test_server.h"

namespace hocket {
namespace {

// By their names without the label of the model, as long as there is one.
std::map<std::string, double> samples(const std::string& text) {
  static const std::regex model(R"re(\{model="(\\.|[^"\\])*"(,|\}))re");
  std::map<std::string, double> out;
  std::istringstream lines(std::regex_replace(std::regex_replace(text, model, "{"), std::regex(R"(\{ )"), " "));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const std::size_t space = line.rfind(' ');
    EXPECT_NE(space, std::string::npos) << line;
    EXPECT_TRUE(out.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second) << line;
  }
  return out;
}

TEST(Metrics, AreWhatTheServiceAndTheServerCounted) {
  TestServer server;
  ServiceMetrics& all = server.service->editable_metrics();
  all.requests[static_cast<std::size_t>(RequestOutcome::kLength)] = 3;
  all.prompt_tokens_cached = 40;
  all.n_queued = 2;
  all.ttft_s.observe(0.03);
  all.ttft_s.observe(0.2);
  all.ttft_s.observe(1e6);
  server.service->editable_info().model_id = "a \"b\"\\c\n";
  server.call("GET", "/nowhere");
  server.call("GET", "/health");
  const RawResponse response = server.call("GET", "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto got = samples(response.body);
  EXPECT_EQ(got.at("hocket_requests_total{outcome=\"length\"}"), 3);
  EXPECT_EQ(got.at("hocket_requests_total{outcome=\"refused\"}"), 0);
  EXPECT_EQ(got.at("hocket_prompt_tokens_total{source=\"cached\"}"), 40);
  EXPECT_EQ(got.at("hocket_requests_queued"), 2);
  EXPECT_EQ(got.at("hocket_ready"), 1);
  EXPECT_EQ(got.at("hocket_http_responses_total{class=\"4xx\"}"), 1);
  EXPECT_EQ(got.at("hocket_http_responses_total{class=\"2xx\"}"), 1);
  EXPECT_GE(got.at("hocket_http_connections"), 1);
  EXPECT_GT(got.at("process_resident_memory_bytes"), 1e6);
  EXPECT_NE(response.body.find(R"(hocket_model_info{model="a \"b\"\\c\n",architecture="llama",quantization="Q4_1"} 1)"),
            std::string::npos);
  EXPECT_NE(response.body.find(R"(hocket_requests_queued{model="a \"b\"\\c\n"} 2)"), std::string::npos);
  // Buckets are cumulative.
  EXPECT_EQ(got.at("hocket_time_to_first_token_seconds_bucket{le=\"0.025\"}"), 0);
  EXPECT_EQ(got.at("hocket_time_to_first_token_seconds_bucket{le=\"0.05\"}"), 1);
  EXPECT_EQ(got.at("hocket_time_to_first_token_seconds_bucket{le=\"300\"}"), 2);
  EXPECT_EQ(got.at("hocket_time_to_first_token_seconds_bucket{le=\"+Inf\"}"), 3);
  EXPECT_EQ(got.at("hocket_time_to_first_token_seconds_count"), 3);
  EXPECT_NEAR(got.at("hocket_time_to_first_token_seconds_sum"), 1e6 + 0.23, 1e-6);
  // Every family is introduced once, before its samples.
  for (const auto& [name, value] : got) {
    std::string family = name.substr(0, name.find('{'));
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (family.ends_with(suffix)) family.resize(family.size() - std::strlen(suffix));
    }
    const std::size_t type = response.body.find("# TYPE " + family + " ");
    EXPECT_NE(type, std::string::npos) << name;
    EXPECT_LT(type, response.body.find("\n" + name)) << name;
  }
}

TEST(Metrics, NeedAKeyAndNoModel) {
  ServerOptions options;
  options.api_keys = {"k"};
  TestServer server(options);
  server.host.set_state(ModelHost::State::kLoading);
  EXPECT_EQ(server.call("GET", "/metrics").status, 401);
  const RawResponse response = server.call("GET", "/metrics", "", "Authorization: Bearer k\r\n");
  EXPECT_EQ(response.status, 200);
  const auto got = samples(response.body);
  EXPECT_EQ(got.at("hocket_ready"), 0);
  EXPECT_FALSE(got.contains("hocket_requests_running"));
}

}  // namespace
}  // namespace hocket
