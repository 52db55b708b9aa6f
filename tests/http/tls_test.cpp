// https with a certificate made for the test: requests, streams, slow and wrong clients, renewal.
#include <httplib.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <thread>

#include "http/test_server.h"
#include "support/temp_folder.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;

// A self-signed certificate for 127.0.0.1 and its key, as PEM files.
class Identity {
 public:
  Identity(const TempFolder& folder, const std::string& name)
      : cert_file(folder.file(name + ".crt")), key_file(folder.file(name + ".key")) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME* subject = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(cert, subject);
    X509_EXTENSION* san = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(cert, san, -1);
    X509_EXTENSION_free(san);
    X509_sign(cert, key, EVP_sha256());
    write(cert_file, [&](std::FILE* file) { PEM_write_X509(file, cert); });
    write(key_file, [&](std::FILE* file) { PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
    X509_free(cert);
    EVP_PKEY_free(key);
  }

  const std::string cert_file, key_file;

 private:
  template <class Write>
  static void write(const std::string& path, Write write) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    write(file);
    std::fclose(file);
  }
};

class Tls : public ::testing::Test {
 protected:
  Tls() { first_.emplace(folder_, "first"); }

  ServerOptions options() const {
    ServerOptions out;
    out.ssl_cert_file = first_->cert_file;
    out.ssl_key_file = first_->key_file;
    return out;
  }
  static std::unique_ptr<httplib::SSLClient> client(const TestServer& server, const Identity& trusted) {
    auto out = std::make_unique<httplib::SSLClient>("127.0.0.1", server.port());
    out->set_ca_cert_path(trusted.cert_file);
    return out;
  }

  TempFolder folder_;
  std::optional<Identity> first_;
};

TEST_F(Tls, AnswersAndStreams) {
  TestServer server(options());
  EXPECT_TRUE(server.server->urls().front().starts_with("https://127.0.0.1:"));
  auto https = client(server, *first_);
  https->set_keep_alive(true);
  for (int i = 0; i < 2; ++i) {
    const auto health = https->Get("/health");
    ASSERT_TRUE(health) << httplib::to_string(health.error());
    EXPECT_EQ(health->status, 200);
  }
  const auto stream = https->Post("/v1/chat/completions", chat_body("\"stream\":true"), "application/json");
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->body.ends_with("data: [DONE]\n\n"));
}

TEST_F(Tls, BodiesOfManyRecords) {
  TestServer server(options());
  server.service->text = std::string(300'000, 'y');
  const auto reply = client(server, *first_)
                         ->Post("/v1/chat/completions", chat_body("\"metadata\":\"" + std::string(500'000, 'x') + "\""),
                                "application/json");
  ASSERT_TRUE(reply) << httplib::to_string(reply.error());
  EXPECT_EQ(reply->status, 200);
  EXPECT_GT(reply->body.size(), 300'000u);
}

TEST_F(Tls, AClientThatLeavesIsCanceled) {
  TestServer server(options());
  server.service->step = milliseconds(20);
  server.service->text = std::string(20'000, ' ');
  client(server, *first_)
      ->Post("/v1/chat/completions", httplib::Headers(), chat_body("\"stream\":true"), "application/json",
             [](const char*, std::size_t) { return false; });
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_cancelled() == 1; }));
}

TEST_F(Tls, PlainHttpIsToldSo) {
  TestServer server(options());
  const RawResponse response = server.call("GET", "/health");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("tls_required"), std::string::npos);
}

TEST_F(Tls, AHandshakeThatStopsIsClosed) {
  ServerOptions quick = options();
  quick.limits.head_timeout = milliseconds(200);
  TestServer server(quick);
  RawClient silent(server.port());
  silent.send("\x16\x03\x01");
  EXPECT_TRUE(silent.closed_soon());
  EXPECT_TRUE(TestServer::eventually([&] { return server.server->n_connections() == 0; }));
}

TEST_F(Tls, ReloadTakesARenewedCertificate) {
  TestServer server(options());
  auto before = client(server, *first_);
  before->set_keep_alive(true);
  ASSERT_TRUE(before->Get("/health"));
  const Identity second(folder_, "second");
  std::filesystem::copy_file(second.cert_file, first_->cert_file, std::filesystem::copy_options::overwrite_existing);
  // The key of another certificate: everything stays as it was.
  const auto mismatch = server.server->reload();
  ASSERT_FALSE(mismatch.ok());
  EXPECT_EQ(mismatch.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(mismatch.error().param, "ssl-key-file");
  EXPECT_FALSE(client(server, second)->Get("/health"));
  std::filesystem::copy_file(second.key_file, first_->key_file, std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(server.server->reload().ok());
  EXPECT_TRUE(client(server, second)->Get("/health"));
  EXPECT_TRUE(before->Get("/health"));  // its connection goes on
}

TEST_F(Tls, WrongFilesAreNamed) {
  FakeHost host(std::make_shared<FakeChatService>());
  ServerOptions bad = options();
  bad.port = 0;
  bad.ssl_key_file.clear();
  EXPECT_EQ(Server::start(bad, host).error().param, "ssl-key-file");
  bad.ssl_key_file = folder_.file("missing");
  EXPECT_EQ(Server::start(bad, host).error().param, "ssl-key-file");
  bad = options();
  bad.port = 0;
  bad.ssl_cert_file = bad.ssl_key_file;
  EXPECT_EQ(Server::start(bad, host).error().param, "ssl-cert-file");
}

}  // namespace
}  // namespace hocket
