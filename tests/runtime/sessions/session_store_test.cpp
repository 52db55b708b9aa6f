#include "runtime/sessions/session_store.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "session_fixture.h"

namespace hocket::test {
namespace {

using Stored = SaveOutcome::Stored;

class SessionStoreTest : public ::testing::Test {
 protected:
  SessionStoreOptions on_disk() const {
    SessionStoreOptions options;
    options.folder = folder.path() / "sessions";
    return options;
  }
  std::vector<std::filesystem::path> blobs() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "sessions" / "blobs"))
      all.push_back(entry.path());
    return all;
  }
  TempFolder folder;
};

TEST_F(SessionStoreTest, WithoutAFolderStatesAreInMemory) {
  const auto store = open_store({});
  EXPECT_EQ(save(*store, {"", "a"}, state_of(run_of(1, 40))).stored, Stored::kRam);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);
  EXPECT_EQ(found(*store, {"", "b"}, run_of(1, 40)), 0u);
  EXPECT_EQ(found(*store, {"other", "a"}, run_of(1, 40)), 0u);
  EXPECT_FALSE(store->stats().persistent);
  EXPECT_GT(store->stats().ram_bytes, 100u);
}

TEST_F(SessionStoreTest, WhatWasSavedIsThereAfterARestart) {
  {
    const auto store = open_store(on_disk());
    EXPECT_EQ(save(*store, {"u", "a"}, state_of(run_of(1, 40))).stored, Stored::kDisk);
    EXPECT_EQ(save(*store, {"u", std::string("nul\0byte", 8)}, state_of(run_of(500, 20))).stored, Stored::kDisk);
  }
  const auto store = open_store(on_disk());
  EXPECT_EQ(store->stats().n_sessions, 2u);
  EXPECT_EQ(store->stats().ram_bytes, 0u);
  EXPECT_EQ(found(*store, {"u", "a"}, run_of(1, 40)), 40u);
  EXPECT_GT(store->stats().ram_bytes, 0u);
  EXPECT_EQ(found(*store, {"u", std::string("nul\0byte", 8)}, run_of(500, 20)), 20u);
  EXPECT_EQ(found(*store, {"u", "nul"}, run_of(500, 20)), 0u);
}

TEST_F(SessionStoreTest, FilesAreForTheirOwnerOnly) {
  const auto store = open_store(on_disk());
  save(*store, {"", "a"}, state_of(run_of(1, 40)));
  const auto mode = [](const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  };
  EXPECT_EQ(mode(folder.path() / "sessions"), 0700u);
  EXPECT_EQ(mode(folder.path() / "sessions" / "blobs"), 0700u);
  EXPECT_EQ(mode(folder.path() / "sessions" / "sessions.db"), 0600u);
  EXPECT_EQ(mode(blobs().at(0)), 0600u);
}

TEST_F(SessionStoreTest, ASecondServerIsToldSo) {
  const auto store = open_store(on_disk());
  const auto second = SessionStore::open(on_disk());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().reason, "session_dir_in_use");
}

TEST_F(SessionStoreTest, ANewSaveReplacesTheOldOne) {
  const auto store = open_store(on_disk());
  save(*store, {"", "a"}, state_of(run_of(1, 40)));
  save(*store, {"", "a"}, state_of(run_of(300, 30)));
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 0u);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(300, 30)), 30u);
  EXPECT_EQ(blobs().size(), 1u);
}

TEST_F(SessionStoreTest, StrictPromptsStartAtWholeChunksOrWhole) {
  const auto store = open_store({});
  SessionState state = state_of(run_of(1, 30));
  state.key.lineage = {20, 20};
  state.row = {1.0f};
  save(*store, {"", "a"}, std::move(state));
  const SessionName name{"", "a"};
  EXPECT_EQ(store->find(name, run_of(1, 50), false).n_tokens, 16u);
  EXPECT_EQ(store->find(name, run_of(1, 50), true).n_tokens, 30u);
  EXPECT_EQ(store->find(name, run_of(1, 20), false).n_tokens, 20u);  // the prompt itself, whose row is known
  EXPECT_EQ(store->find(name, run_of(1, 19), false).n_tokens, 16u);
  EXPECT_EQ(store->find(name, run_of(1, 19), true).n_tokens, 18u);
  EXPECT_EQ(store->find(name, run_of(1, 7), false).n_tokens, 0u);
}

TEST_F(SessionStoreTest, StatesThatCannotBeCutAreTakenWhole) {
  const auto store = open_store({});
  std::vector<SessionState> states;
  states.push_back(state_of(run_of(1, 16)));
  states.back().key.kind = StateKind::kAligned;
  states.push_back(state_of(run_of(1, 20)));
  states.back().key.kind = StateKind::kExact;
  states.back().row = {1.0f};
  states.push_back(state_of(run_of(1, 30)));
  states.back().key.lineage = {20, 20};
  for (SessionState& state : states) state.key.cuts = false;
  const SessionName name{"", "a"};
  save(*store, name, std::move(states));
  EXPECT_EQ(store->find(name, run_of(1, 50), false).n_tokens, 16u);
  EXPECT_EQ(store->find(name, run_of(1, 50), true).n_tokens, 30u);
  EXPECT_EQ(store->find(name, run_of(1, 29), true).n_tokens, 20u);
  EXPECT_EQ(store->find(name, run_of(1, 20), false).n_tokens, 20u);
  EXPECT_EQ(store->find(name, run_of(1, 17), true).n_tokens, 16u);
  EXPECT_EQ(store->find(name, run_of(1, 12), true).n_tokens, 0u);
  // The next turn was found whole elsewhere, so that no aligned state could be taken: the old one remains.
  SessionState next = state_of(run_of(1, 40));
  next.key.cuts = false;
  save(*store, name, std::move(next));
  EXPECT_EQ(store->find(name, run_of(1, 35), false).n_tokens, 16u);
}

TEST_F(SessionStoreTest, AForkSharesItsStates) {
  const auto store = open_store(on_disk());
  save(*store, {"u", "a"}, state_of(run_of(1, 40)));
  const auto bytes = store->stats().disk_bytes;
  ASSERT_TRUE(store->fork("u", "a", "b").ok());
  EXPECT_EQ(store->stats().disk_bytes, bytes);
  EXPECT_EQ(blobs().size(), 1u);
  // Each goes its own way; what is shared stays until nobody has it.
  save(*store, {"u", "a"}, state_of(run_of(1, 60)));
  EXPECT_EQ(found(*store, {"u", "b"}, run_of(1, 40)), 40u);
  EXPECT_EQ(blobs().size(), 2u);
  ASSERT_TRUE(store->drop({"u", "b"}).ok());
  EXPECT_EQ(blobs().size(), 1u);
  EXPECT_EQ(found(*store, {"u", "a"}, run_of(1, 60)), 60u);
  EXPECT_EQ(store->stats().n_forked, 1u);
}

TEST_F(SessionStoreTest, AForkLastsToo) {
  {
    const auto store = open_store(on_disk());
    save(*store, {"u", "a"}, state_of(run_of(1, 40)));
    ASSERT_TRUE(store->fork("u", "a", "b").ok());
    ASSERT_TRUE(store->drop({"u", "a"}).ok());
  }
  const auto store = open_store(on_disk());
  EXPECT_EQ(found(*store, {"u", "a"}, run_of(1, 40)), 0u);
  EXPECT_EQ(found(*store, {"u", "b"}, run_of(1, 40)), 40u);
}

TEST_F(SessionStoreTest, WhatIsNotThereIsNotFound) {
  const auto store = open_store({});
  EXPECT_EQ(store->fork("", "a", "b").error().reason, "session_not_found");
  EXPECT_EQ(store->drop({"", "a"}).error().reason, "session_not_found");
  EXPECT_EQ(store->export_session({"", "a"}).error().reason, "session_not_found");
  EXPECT_EQ(store->fork("", "a", "a").error().param, "target_session_id");
}

TEST_F(SessionStoreTest, WhatWasUsedLeastLatelyMakesRoom) {
  SessionStoreOptions options = on_disk();
  options.most_disk_bytes = 10'000;
  const auto store = open_store(options);
  for (const char* id : {"a", "b", "c"}) save(*store, {"one", id}, state_of(run_of(1, 40), 1200));
  found(*store, {"one", "a"}, run_of(1, 40));
  // Three of some 1500 bytes are the half of it: a fourth is one too many.
  save(*store, {"one", "d"}, state_of(run_of(1, 40), 1200));
  EXPECT_EQ(found(*store, {"one", "b"}, run_of(1, 40)), 0u);
  for (const char* id : {"a", "c", "d"}) EXPECT_EQ(found(*store, {"one", id}, run_of(1, 40)), 40u) << id;
  EXPECT_EQ(store->stats().n_evicted, 1u);
  EXPECT_EQ(blobs().size(), 3u);
  // Another tenant has its own half; who comes third takes from whoever waited longest.
  for (const char* id : {"a", "b", "c"}) save(*store, {"two", id}, state_of(run_of(1, 40), 1200));
  EXPECT_EQ(store->stats().n_evicted, 1u);
  save(*store, {"three", "a"}, state_of(run_of(1, 40), 1200));
  EXPECT_EQ(store->stats().n_evicted, 2u);
  EXPECT_EQ(found(*store, {"one", "a"}, run_of(1, 40)), 0u);
  EXPECT_LE(store->stats().disk_bytes, 10'000u);
}

TEST_F(SessionStoreTest, WhatDoesNotFitIsSkippedAndChangesNothing) {
  SessionStoreOptions options = on_disk();
  options.most_disk_bytes = 10'000;
  const auto store = open_store(options);
  save(*store, {"", "a"}, state_of(run_of(1, 40)));
  const SaveOutcome outcome = save(*store, {"", "a"}, state_of(run_of(1, 40), 6000));
  EXPECT_EQ(outcome.stored, Stored::kSkipped);
  EXPECT_EQ(outcome.reason, "over_budget");
  EXPECT_GT(outcome.n_bytes, 6000u);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);
  EXPECT_EQ(blobs().size(), 1u);
  EXPECT_EQ(store->stats().n_skipped, 1u);
}

TEST_F(SessionStoreTest, ASmallerBudgetIsKeptAfterARestart) {
  {
    const auto store = open_store(on_disk());
    for (const char* id : {"a", "b", "c", "d"}) save(*store, {"", id}, state_of(run_of(1, 40), 1200));
  }
  SessionStoreOptions options = on_disk();
  options.most_disk_bytes = 7'000;
  const auto store = open_store(options);
  EXPECT_EQ(store->stats().n_sessions, 2u);
  EXPECT_EQ(found(*store, {"", "d"}, run_of(1, 40)), 40u);
  EXPECT_EQ(blobs().size(), 2u);
}

TEST_F(SessionStoreTest, CopiesInMemoryAreBounded) {
  SessionStoreOptions options = on_disk();
  options.most_ram_bytes = 7'000;
  const auto store = open_store(options);
  for (const char* id : {"a", "b", "c", "d"}) save(*store, {"", id}, state_of(run_of(1, 40), 1200));
  EXPECT_LE(store->stats().ram_bytes, 3500u);
  EXPECT_EQ(store->stats().n_sessions, 4u);
  for (const char* id : {"a", "b", "c", "d"}) EXPECT_EQ(found(*store, {"", id}, run_of(1, 40)), 40u);
  EXPECT_LE(store->stats().ram_bytes, 3500u);

  options.folder = folder.path() / "others";
  options.most_ram_bytes = 0;
  const auto without = open_store(options);
  EXPECT_EQ(save(*without, {"", "a"}, state_of(run_of(1, 40))).stored, Stored::kDisk);
  EXPECT_EQ(without->stats().ram_bytes, 0u);
  EXPECT_EQ(found(*without, {"", "a"}, run_of(1, 40)), 40u);
}

TEST_F(SessionStoreTest, MemoryAloneHasABudget) {
  SessionStoreOptions options;
  options.most_ram_bytes = 7'000;
  const auto store = open_store(options);
  for (const char* id : {"a", "b", "c"}) save(*store, {"", id}, state_of(run_of(1, 40), 1200));
  EXPECT_EQ(store->stats().n_sessions, 2u);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 0u);
  options.most_ram_bytes = 0;
  EXPECT_EQ(save(*open_store(options), {"", "a"}, state_of(run_of(1, 40))).reason, "over_budget");
}

TEST_F(SessionStoreTest, StatesOfAnotherModelAreKeptAndNotUsed) {
  {
    const auto store = open_store(on_disk());
    save(*store, {"", "a"}, state_of(run_of(1, 40)));
  }
  SessionStoreOptions other = on_disk();
  other.identity = {"model-2", "layout-1"};
  {
    const auto store = open_store(other);
    const SessionMatch match = store->find({"", "a"}, run_of(1, 50), true);
    EXPECT_EQ(match.state, nullptr);
    EXPECT_EQ(match.reason, "session_model");
    EXPECT_EQ(store->list("").at(0).reason, "session_model");
    EXPECT_EQ(store->export_session({"", "a"}).error().reason, "session_model");
    SessionState theirs = state_of(run_of(1, 60));
    theirs.key.identity = other.identity;
    save(*store, {"", "a"}, std::move(theirs));
    EXPECT_EQ(store->find({"", "a"}, run_of(1, 70), true).n_tokens, 60u);
  }
  const auto store = open_store(on_disk());
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);
}

TEST_F(SessionStoreTest, DamagedFilesAreNotUsed) {
  {
    const auto store = open_store(on_disk());
    save(*store, {"", "a"}, state_of(run_of(1, 40)));
  }
  {
    std::fstream file(blobs().at(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('\x55');
  }
  const auto store = open_store(on_disk());
  const SessionMatch match = store->find({"", "a"}, run_of(1, 50), true);
  EXPECT_EQ(match.state, nullptr);
  EXPECT_EQ(match.reason, "session_damaged");
  EXPECT_EQ(save(*store, {"", "a"}, state_of(run_of(1, 40))).stored, Stored::kDisk);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);
}

TEST_F(SessionStoreTest, TheStartTidiesUp) {
  {
    const auto store = open_store(on_disk());
    for (const char* id : {"a", "b", "c"}) save(*store, {"", id}, state_of(run_of(1, 40)));
  }
  const auto all = blobs();
  ASSERT_EQ(all.size(), 3u);
  std::filesystem::remove(all[0]);
  std::filesystem::resize_file(all[1], 50);
  const auto folder_of = all[0].parent_path();
  const auto put = [&](const std::string& name) { std::ofstream(folder_of / name) << "x"; };
  put("0123456789abcdef0123456789abcdef");              // a state that nobody names
  put(".0123456789abcdef0123456789abcdef.tmp-AbCdEf");  // one that was not finished
  put("notes.txt");                                     // nothing of ours
  const auto store = open_store(on_disk());
  EXPECT_EQ(store->stats().n_sessions, 1u);
  EXPECT_EQ(blobs().size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(folder_of / "notes.txt"));
}

TEST_F(SessionStoreTest, ADiskThatRefusesIsReported) {
  const auto store = open_store(on_disk());
  save(*store, {"", "a"}, state_of(run_of(1, 40)));
  // No state can be written where the folder has gone; the index is still there.
  std::filesystem::rename(folder.path() / "sessions" / "blobs", folder.path() / "sessions" / "gone");
  const SaveOutcome outcome = save(*store, {"", "a"}, state_of(run_of(1, 60)));
  EXPECT_EQ(outcome.stored, Stored::kSkipped);
  EXPECT_EQ(outcome.reason, "disk_error");
  EXPECT_EQ(store->stats().n_failed, 1u);
  EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);  // from memory
  std::filesystem::rename(folder.path() / "sessions" / "gone", folder.path() / "sessions" / "blobs");
  EXPECT_EQ(save(*store, {"", "a"}, state_of(run_of(1, 60))).stored, Stored::kDisk);
}

// No file of this process grows beyond so many bytes while it lives, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t most) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST_F(SessionStoreTest, AFullDiskLosesNothing) {
  {
    const auto store = open_store(on_disk());
    for (int i = 0; i < 8; ++i) save(*store, {"", "a"}, state_of(run_of(1, 40)));
    ASSERT_TRUE(store->fork("", "a", "b").ok());
    const auto log_bytes = std::filesystem::file_size(folder.path() / "sessions" / "sessions.db-wal");
    ASSERT_GT(log_bytes, 60'000u);
    {
      // There is no room for a state.
      const FileSizeLimit limit(50'000);
      EXPECT_EQ(save(*store, {"", "a"}, state_of(run_of(1, 60), 80'000)).reason, "disk_error");
      EXPECT_EQ(blobs().size(), 1u);
      // There is for a state, and none for the index.
      EXPECT_EQ(save(*store, {"", "a"}, state_of(run_of(1, 60))).reason, "disk_error");
      EXPECT_FALSE(store->fork("", "a", "c").ok());
      EXPECT_FALSE(store->drop({"", "a"}).ok());
    }
    EXPECT_EQ(found(*store, {"", "a"}, run_of(1, 40)), 40u);
    EXPECT_EQ(store->stats().n_failed, 2u);
    EXPECT_EQ(save(*store, {"", "d"}, state_of(run_of(1, 50))).stored, Stored::kDisk);
    EXPECT_EQ(blobs().size(), 2u);
  }
  const auto store = open_store(on_disk());
  EXPECT_EQ(store->stats().n_sessions, 3u);
  for (const char* id : {"a", "b"}) EXPECT_EQ(found(*store, {"", id}, run_of(1, 40)), 40u);
  EXPECT_EQ(found(*store, {"", "d"}, run_of(1, 50)), 50u);
}

TEST_F(SessionStoreTest, DroppingIsForATenantOrForAll) {
  const auto store = open_store(on_disk());
  for (const char* tenant : {"u", "v"})
    for (const char* id : {"a", "b"}) save(*store, {tenant, id}, state_of(run_of(1, 40)));
  EXPECT_EQ(store->list("u").size(), 2u);
  EXPECT_EQ(*store->drop_tenant("u"), 2u);
  EXPECT_TRUE(store->list("u").empty());
  EXPECT_EQ(found(*store, {"v", "a"}, run_of(1, 40)), 40u);
  EXPECT_EQ(*store->drop_all(), 2u);
  EXPECT_EQ(store->stats().disk_bytes, 0u);
  EXPECT_TRUE(blobs().empty());
}

TEST_F(SessionStoreTest, AnExportedSessionComesBack) {
  const auto store = open_store(on_disk());
  SessionState state = state_of(run_of(1, 40));
  state.row = {1.0f, 2.0f};
  save(*store, {"u", "a"}, std::move(state));
  const auto bytes = store->export_session({"u", "a"});
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  ASSERT_TRUE(store->import_session({"v", "b"}, *bytes).ok());
  EXPECT_EQ(store->find({"v", "b"}, run_of(1, 40), false).n_tokens, 40u);

  SessionStoreOptions other;
  other.identity = {"model-1", "layout-2"};
  EXPECT_EQ(open_store(other)->import_session({"", "a"}, *bytes).error().reason, "session_layout");
  SessionStoreOptions small;
  small.most_ram_bytes = 100;
  EXPECT_EQ(open_store(small)->import_session({"", "a"}, *bytes).error().reason, "cache_budget_exceeded");
  auto damaged = *bytes;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(store->import_session({"", "c"}, damaged).error().code, ErrorCode::kInvalid);
}

TEST_F(SessionStoreTest, TheListTellsTheLatestFirst) {
  const auto store = open_store(on_disk());
  for (const char* id : {"a", "b"}) save(*store, {"", id}, state_of(run_of(1, 40)));
  found(*store, {"", "a"}, run_of(1, 40));
  const auto list = store->list("");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].id, "a");
  EXPECT_EQ(list[0].n_tokens, 40u);
  EXPECT_EQ(list[0].n_states, 1u);
  EXPECT_TRUE(list[0].on_disk && list[0].in_ram);
  EXPECT_EQ(list[0].reason, "");
  EXPECT_GT(list[0].used_ms, 1'600'000'000'000);
}

TEST_F(SessionStoreTest, SavesThatWaitAtTheEndAreToldSo) {
  std::atomic<int> n_done{0};
  {
    const auto store = open_store(on_disk());
    for (int i = 0; i < 50; ++i) {
      std::vector<SessionState> states;
      states.push_back(state_of(run_of(1, 40), 50'000));
      store->save({"", std::to_string(i)}, std::move(states), [&](const SaveOutcome& outcome) {
        EXPECT_TRUE(outcome.stored == Stored::kDisk || outcome.reason == "draining") << outcome.reason;
        ++n_done;
      });
    }
  }
  EXPECT_EQ(n_done, 50);
}

TEST_F(SessionStoreTest, ManyAtATime) {
  SessionStoreOptions options = on_disk();
  options.most_disk_bytes = 60'000;
  options.most_ram_bytes = 20'000;
  constexpr int kThreads = 4, kRounds = 40;
  {
    const auto store = open_store(options);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < kRounds; ++i) {
          const auto tenant = std::to_string(random() % 3);
          const auto id = std::to_string(random() % 4), other = std::to_string(random() % 4);
          switch (random() % 5) {
            case 0:
              (void)store->fork(tenant, id, other + "f");
              break;
            case 1:
              (void)store->drop({tenant, id});
              break;
            default:
              save(*store, {tenant, id}, state_of(run_of(1 + static_cast<TokenId>(random() % 5), 40), 1000));
          }
          found(*store, {tenant, other}, run_of(1 + static_cast<TokenId>(random() % 5), 40));
          (void)store->list(tenant);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(store->wait_idle(std::chrono::seconds(10)));
    EXPECT_LE(store->stats().disk_bytes, 60'000u);
    EXPECT_LE(store->stats().ram_bytes, 20'000u);
    EXPECT_EQ(store->stats().n_failed, 0u);
    EXPECT_EQ(blobs().size(), store->stats().n_states);
  }
  const auto store = open_store(options);
  EXPECT_EQ(blobs().size(), store->stats().n_states);
  for (const char* tenant : {"0", "1", "2"})
    for (const SessionInfo& info : store->list(tenant)) EXPECT_TRUE(store->export_session({tenant, info.id}).ok());
}

}  // namespace
}  // namespace hocket::test
