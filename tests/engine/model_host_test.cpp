// Which models a server has, when they are loaded, and when they go. The models are real files; what is loaded is fake.
#include "engine/model_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "support/fake_chat_service.h"
#include "support/temp_folder.h"

namespace hocket::testing_engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kSoon{20};

bool never() {
  return false;
}

template <class Condition>
bool eventually(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

// A folder with the models "a", "b", "c", each planned to take 100 MiB, and loads that a test can hold up.
class ModelHostTest : public testing::Test {
 protected:
  ModelHostTest() {
    for (const char* name : {"a", "b", "c"}) add(name);
    options.folder = folder.path().string();
    options.plan = [](const ServiceOptions&) -> Result<ServicePlan> {
      ServicePlan plan;
      plan.memory.weight_bytes = std::size_t{60} << 20;
      plan.memory.cache_bytes = std::size_t{30} << 20;
      plan.memory.compute_bytes = std::size_t{10} << 20;
      return plan;
    };
    options.load = [this](const ServiceOptions& asked) { return load(asked); };
  }

  void add(const std::string& name, const std::string& model = "llama") const {
    fs::copy_file(fs::path(HOCKET_TEST_DATA) / "lm" / (model + ".gguf"), folder.path() / (name + ".gguf"));
  }
  Result<std::shared_ptr<ChatService>> load(const ServiceOptions& asked) {
    std::unique_lock lock(mutex);
    loads.push_back(asked.aliases.front());
    session_folders.push_back(asked.sessions.folder);
    changed.notify_all();
    changed.wait(lock, [&] { return !held.contains(asked.aliases.front()); });
    if (failing.contains(asked.aliases.front())) return Error(ErrorCode::kBadModel, "damaged", "blk.0");
    auto fake = std::make_shared<FakeChatService>();
    fake->editable_info().model_id = asked.aliases.front();
    fake->editable_info().aliases = asked.aliases;
    fakes.emplace_back(asked.aliases.front(), fake);
    return std::shared_ptr<ChatService>(fake);
  }
  void hold(const std::string& name, bool on) {
    const std::lock_guard lock(mutex);
    if (on)
      held.insert(name);
    else
      held.erase(name);
    changed.notify_all();
  }
  std::size_t n_loads() {
    const std::lock_guard lock(mutex);
    return loads.size();
  }
  // How many of the fakes that were loaded under this name are alive.
  std::size_t n_alive(const std::string& name) {
    const std::lock_guard lock(mutex);
    std::size_t n = 0;
    for (const auto& [id, fake] : fakes) n += id == name && !fake.expired();
    return n;
  }
  void open() {
    auto opened = ModelHost::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    host = std::move(*opened);
  }
  std::string id_of(std::string_view name) {
    const auto service = host->use(name, never);
    return service ? (*service)->info().model_id : "error: " + service.error().message;
  }
  ModelStatus::State state_of(const std::string& id) {
    for (const ModelStatus& model : host->models())
      if (model.id == id) return model.state;
    ADD_FAILURE() << "there is no " << id;
    return ModelStatus::State::kFailed;
  }
  static std::unique_ptr<Reply> start_reply(ChatService& service, const std::string& id) {
    ChatRequest request;
    request.request_id = id;
    auto reply = service.chat(std::move(request));
    EXPECT_TRUE(reply.ok());
    return reply ? *std::move(reply) : nullptr;
  }

  TempFolder folder;
  HostOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> held, failing;
  std::vector<std::string> loads, session_folders;
  std::vector<std::pair<std::string, std::weak_ptr<FakeChatService>>> fakes;
  std::unique_ptr<ModelHost> host;  // last: its thread uses the others
};

TEST_F(ModelHostTest, LoadsWhatIsAskedForAndOnce) {
  add("music", "llama");
  fs::rename(folder.path() / "music.gguf", folder.path() / "notes.txt");  // no model
  open();
  EXPECT_EQ(host->state(), ModelHost::State::kReady);
  EXPECT_EQ(host->models().size(), 3U);
  EXPECT_EQ(state_of("b"), ModelStatus::State::kUnloaded);
  EXPECT_TRUE(host->loaded().empty());
  std::vector<std::thread> clients;
  std::atomic<int> n_right{0};
  for (int i = 0; i < 8; ++i) clients.emplace_back([&] { n_right += id_of("b") == "b"; });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(n_right, 8);
  EXPECT_EQ(loads, std::vector<std::string>{"b"});
  EXPECT_EQ(state_of("b"), ModelStatus::State::kLoaded);
  EXPECT_EQ(host->loaded().size(), 1U);
}

TEST_F(ModelHostTest, SaysWhichModelsThereAre) {
  open();
  const auto other = host->use("d", never);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(other.error().reason, "model_not_found");
  EXPECT_EQ(other.error().message, R"(there is no model "d"; this server has "a", "b", "c")");
  const auto none = host->use("", never);  // any of three
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(none.error().param, "model");
  EXPECT_EQ(n_loads(), 0U);
}

TEST_F(ModelHostTest, SeesFilesThatComeAndGo) {
  open();
  EXPECT_NE(id_of("d"), "d");
  add("d");
  EXPECT_EQ(id_of("d"), "d");
  fs::remove(folder.path() / "d.gguf");
  fs::remove(folder.path() / "a.gguf");
  EXPECT_EQ(host->models().size(), 3U);  // b, c, and d as long as it is loaded
  EXPECT_NE(id_of("a"), "a");
}

TEST_F(ModelHostTest, KnowsAliases) {
  options.aliases = {{"gpt-4o", "b"}, {"small", "b"}, {"large", "c"}};
  open();
  EXPECT_EQ(id_of("gpt-4o"), "b");
  EXPECT_EQ(id_of("large"), "c");
  EXPECT_EQ(id_of("small"), "b");
  EXPECT_EQ(n_loads(), 2U);
  options.aliases = {{"x", "nothing"}};
  const auto wrong = ModelHost::open(options);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().param, "alias");
}

TEST_F(ModelHostTest, TheFirstModelIsLoadedAtTheStartAndMeantWithoutAName) {
  options.service.model_path = (folder.path() / "b.gguf").string();
  options.service.aliases = {"main", "other name"};
  hold("main", true);
  open();
  EXPECT_EQ(host->state(), ModelHost::State::kLoading);
  EXPECT_EQ(host->models().front().id, "main");
  EXPECT_EQ(host->models().size(), 3U);  // its file is not a second model
  const auto early = host->use("main", never);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().reason, "loading");
  hold("main", false);
  ASSERT_TRUE(eventually([&] { return host->state() == ModelHost::State::kReady; }));
  EXPECT_EQ(id_of(""), "main");
  EXPECT_EQ(id_of("other name"), "main");
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(id_of(""), "main");
}

TEST_F(ModelHostTest, EveryModelHasASessionFolderOfItsOwn) {
  options.service.sessions.folder = (folder.path() / "sessions").string();
  open();
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(id_of("b"), "b");
  EXPECT_EQ(session_folders,
            (std::vector{(folder.path() / "sessions/a").string(), (folder.path() / "sessions/b").string()}));
}

TEST_F(ModelHostTest, TheOneThatWasUsedLongestAgoMakesRoom) {
  options.most_bytes = std::size_t{250} << 20;
  open();
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(id_of("b"), "b");
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(id_of("c"), "c");
  EXPECT_EQ(n_alive("b"), 0U);
  EXPECT_EQ(state_of("b"), ModelStatus::State::kUnloaded);
  EXPECT_EQ(n_alive("a"), 1U);
  EXPECT_EQ(id_of("b"), "b");
  EXPECT_EQ(n_alive("a"), 0U);
}

TEST_F(ModelHostTest, CountsModelsToo) {
  options.most_models = 1;
  open();
  for (const char* name : {"a", "b", "c", "a"}) EXPECT_EQ(id_of(name), name);
  EXPECT_EQ(n_loads(), 4U);
  EXPECT_EQ(host->loaded().size(), 1U);
}

TEST_F(ModelHostTest, AModelThatWorksEndsItsRequestsFirstAndGetsNoNewOnes) {
  options.most_models = 1;
  open();
  std::unique_ptr<Reply> reply;
  {
    const auto service = host->use("a", never);
    ASSERT_TRUE(service.ok());
    reply = start_reply(**service, "long");
  }
  std::string got, again;
  std::thread wants_b([&] { got = id_of("b"); });
  // Once it is to leave it is as if it were not there.
  ASSERT_TRUE(eventually([&] { return state_of("a") == ModelStatus::State::kUnloaded; }));
  std::thread wants_a([&] { again = id_of("a"); });
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_EQ(n_alive("a"), 1U);
  EXPECT_EQ(n_loads(), 1U);
  reply.reset();
  wants_b.join();
  wants_a.join();
  EXPECT_EQ(got, "b");
  EXPECT_EQ(again, "a");
  EXPECT_EQ(loads, (std::vector<std::string>{"a", "b", "a"}));
}

TEST_F(ModelHostTest, WhoGivesUpLeavesEverythingAsItWas) {
  options.most_models = 1;
  open();
  std::unique_ptr<Reply> reply;
  {
    const auto service = host->use("a", never);
    reply = start_reply(**service, "long");
  }
  std::atomic<bool> gone{false};
  Result<std::shared_ptr<ChatService>> left = Error();
  std::thread client([&] { left = host->use("b", [&] { return gone.load(); }); });
  ASSERT_TRUE(eventually([&] { return state_of("a") == ModelStatus::State::kUnloaded; }));
  gone = true;
  client.join();
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(loads, std::vector<std::string>{"a"});
}

TEST_F(ModelHostTest, OneThatIsTooLargeIsRefused) {
  options.most_bytes = std::size_t{99} << 20;
  open();
  const auto large = host->use("a", never);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(large.error().param, "model");
  EXPECT_NE(large.error().message.find("100 MiB"), std::string::npos);
  EXPECT_EQ(n_loads(), 0U);
}

TEST_F(ModelHostTest, SomethingElseTakesItsShareOfTheBudget) {
  options.most_bytes = std::size_t{250} << 20;
  open();
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(id_of("b"), "b");
  const auto too_much = host->reserve("a song", std::size_t{251} << 20, never);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(too_much.error().message.find("a song needs about 251 MiB"), std::string::npos);

  auto small = host->reserve("a song", std::size_t{50} << 20, never);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(host->loaded().size(), 2U);  // there was room
  auto large = host->reserve("another", std::size_t{100} << 20, never);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(state_of("a"), ModelStatus::State::kUnloaded);
  EXPECT_EQ(state_of("b"), ModelStatus::State::kLoaded);
  // A model leaves what is reserved, and makes room among the others.
  EXPECT_EQ(id_of("c"), "c");
  EXPECT_EQ(state_of("b"), ModelStatus::State::kUnloaded);
  *large = nullptr;
  *small = nullptr;
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(host->loaded().size(), 2U);
}

TEST_F(ModelHostTest, SomethingElseWaitsForModelsThatWorkAndMayGiveUp) {
  options.most_bytes = std::size_t{100} << 20;
  open();
  auto service = host->use("a", never);
  ASSERT_TRUE(service.ok());
  auto reply = start_reply(**service, "long");
  *service = nullptr;
  std::atomic<bool> gone{false};
  std::thread impatient([&] {
    const auto refused = host->reserve("a song", 1, [&] { return gone.load(); });
    EXPECT_EQ(refused.error().code, ErrorCode::kCancelled);
  });
  std::this_thread::sleep_for(milliseconds(50));
  gone = true;
  impatient.join();
  std::atomic<bool> has_room{false};
  std::thread patient([&] {
    const auto room = host->reserve("a song", 1, never);
    EXPECT_TRUE(room.ok());
    has_room = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(has_room);
  reply.reset();
  patient.join();
  EXPECT_TRUE(eventually([&] { return n_alive("a") == 0; }));

  auto all = host->reserve("a song", options.most_bytes, never);
  ASSERT_TRUE(all.ok());
  std::thread last([&] { EXPECT_EQ(host->reserve("another", 1, never).error().reason, "draining"); });
  std::this_thread::sleep_for(milliseconds(20));
  host->drain(milliseconds(0));
  last.join();
}

TEST_F(ModelHostTest, ALoadHoldsUpNobodyElse) {
  open();
  EXPECT_EQ(id_of("a"), "a");
  hold("b", true);
  std::string got;
  std::thread client([&] { got = id_of("b"); });
  ASSERT_TRUE(eventually([&] { return n_loads() == 2; }));
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_EQ(state_of("b"), ModelStatus::State::kLoading);
  hold("b", false);
  client.join();
  EXPECT_EQ(got, "b");
}

TEST_F(ModelHostTest, AFailedLoadIsReportedAndTriedAgain) {
  failing.insert("a");
  open();
  const auto bad = host->use("a", never);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kBadModel);
  EXPECT_EQ(state_of("a"), ModelStatus::State::kFailed);
  EXPECT_EQ(host->state(), ModelHost::State::kReady);  // the server is fine
  failing.clear();
  EXPECT_EQ(id_of("a"), "a");
  EXPECT_FALSE(host->models().front().fault.has_value());
}

TEST_F(ModelHostTest, IdleModelsAreUnloadedAndComeBack) {
  options.keep_alive = milliseconds(30);
  options.service.model_path = (folder.path() / "a.gguf").string();
  options.service.aliases = {"a"};
  open();
  ASSERT_TRUE(eventually([&] { return host->state() == ModelHost::State::kReady; }));
  ASSERT_TRUE(eventually([&] { return n_alive("a") == 0; }));
  EXPECT_EQ(host->state(), ModelHost::State::kReady);
  std::unique_ptr<Reply> reply;
  {
    const auto service = host->use("", never);
    ASSERT_TRUE(service.ok());
    reply = start_reply(**service, "long");
  }
  std::this_thread::sleep_for(milliseconds(1500));  // beyond the next look
  EXPECT_EQ(n_alive("a"), 1U);
  reply.reset();
  ASSERT_TRUE(eventually([&] { return n_alive("a") == 0; }));
}

TEST_F(ModelHostTest, AStopEndsWhatWaits) {
  options.most_models = 1;
  open();
  std::unique_ptr<Reply> reply;
  {
    const auto service = host->use("a", never);
    reply = start_reply(**service, "long");
  }
  Result<std::shared_ptr<ChatService>> waited = Error();
  std::thread client([&] { waited = host->use("b", never); });
  ASSERT_TRUE(eventually([&] { return state_of("a") == ModelStatus::State::kUnloaded; }));
  host->drain(milliseconds(10));
  client.join();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().reason, "draining");
  reply.reset();
}

TEST_F(ModelHostTest, NamesAFolderThatCannotBeRead) {
  options.folder = (folder.path() / "none").string();
  const auto opened = ModelHost::open(options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
}

TEST(ModelHostOfAFile, AFailedLoadIsReported) {
  HostOptions options;
  options.service.model_path = "/nonexistent/model.gguf";
  const auto host = ModelHost::open(options);
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE(eventually([&] { return (*host)->state() == ModelHost::State::kFailed; }));
  EXPECT_EQ((*host)->fault()->code, ErrorCode::kNotFound);
  EXPECT_EQ((*host)->use("", never).error().message, (*host)->fault()->message);
}

TEST(ModelHostOfAFile, MayBeDroppedWhileLoading) {
  HostOptions options;
  options.service.model_path = "/nonexistent/model.gguf";
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ModelHost::open(options).ok());
}

TEST(ModelHostOfAService, IsReadyAtOnce) {
  const auto host = ModelHost::of(std::make_shared<FakeChatService>());
  EXPECT_EQ(host->state(), ModelHost::State::kReady);
  EXPECT_EQ((*host->use("fake", never))->info().model_id, "org/fake:1b");
  EXPECT_EQ(host->use("other", never).error().reason, "model_not_found");
}

TEST(ModelHostOfNothing, SaysSo) {
  const auto host = ModelHost::none();
  EXPECT_EQ(host->state(), ModelHost::State::kReady);
  EXPECT_EQ(host->use("", never).error().reason, "model_not_found");
  EXPECT_TRUE(host->models().empty());
  EXPECT_TRUE(host->reserve("a song", std::size_t{1} << 50, never).ok());
  EXPECT_EQ(ModelHost::none(10)->reserve("a song", 11, never).error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace hocket::testing_engine
