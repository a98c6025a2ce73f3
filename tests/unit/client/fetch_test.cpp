// Client::load() takes a bundle from the memory of the process, the cache on disk, the coordinator or a fallback
// folder. The test acts as coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include "client/fetch/client.h"
#include "client/program/bundle.h"
#include "client/program/model.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

// The coordinator of these tests (options().ask) has a bundle for each request and counts requests in asked_. A test
// can delay its answers (answers_) or make them errors (error_).
class FetchTest : public ProgramsTest {
 protected:
  void SetUp() override {
    program_ = program_of("y[i] = x[i] + w[i];");
    if (program_.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
    request_.graph = root_ + "/g.graph";
    ASSERT_TRUE(write_file(request_.graph, program_.graph_text).ok());
    fallback_ = root_ + "/fallback";
    ASSERT_TRUE(write_bundle(fallback_, program_, "{}").ok());
  }
  ClientOptions options() {
    ClientOptions options;
    options.cache.folder = root_ + "/cache";
    options.pause = std::chrono::milliseconds(0);
    options.ask = [this](const BundleRequest&, const std::string& folder, const std::stop_token& stop) -> absl::Status {
      ++asked_;
      if (!answers_.try_wait()) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        while (!answers_.try_wait() && !stop.stop_requested())
          stopped.wait_for(lock, stop, std::chrono::milliseconds(1), [] { return false; });
      }
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      if (!error_.ok()) return error_;
      return write_bundle(folder, program_, "{}");
    };
    return options;
  }
  static std::optional<Client::Clock::time_point> in(int64_t ms) {
    return Client::Clock::now() + std::chrono::milliseconds(ms);
  }
  // Returns the folders of the complete cache entries; the name of an incomplete one begins with a dot.
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& key : fs::directory_iterator(root_ + "/cache"))
      for (const auto& entry : fs::directory_iterator(key.path()))
        if (entry.path().filename().string().front() != '.') out.push_back(entry.path());
    return out;
  }

  Program program_;
  BundleRequest request_;
  std::string fallback_;
  std::atomic<int> asked_ = 0;
  std::latch answers_{1};  // the coordinator answers once this latch is open
  absl::Status error_;
};

TEST_F(FetchTest, LooksInTheProcessThenOnDiskThenAsks) {
  answers_.count_down();
  {
    Client client(options());
    EXPECT_EQ(client.load(request_, {})->from, BundleFrom::kCoordinator);
    EXPECT_EQ(client.load(request_, {})->from, BundleFrom::kProcess);
    const auto found = client.load(request_, in(0));
    ASSERT_TRUE(found.ok());
    auto model = Model::of(found->bundle);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->inputs().size(), 1u);
  }
  Client again(options());
  EXPECT_EQ(again.load(request_, in(0))->from, BundleFrom::kDisk);
  EXPECT_EQ(again.load(request_, in(0))->from, BundleFrom::kProcess);
  EXPECT_EQ(asked_, 1);
}

TEST_F(FetchTest, WhatDecidesAboutKernelsIsTheKey) {
  answers_.count_down();
  Client client(options());
  ASSERT_TRUE(client.load(request_, {}).ok());
  std::vector<BundleRequest> others(5, request_);
  others[0].target = "cpu:avx2";
  others[1].bind = {{"n", 3}};
  others[2].trials = 5;
  others[3].weights = {"w"};
  others[4].allow_tf32 = true;
  for (const BundleRequest& other : others) EXPECT_EQ(client.load(other, {})->from, BundleFrom::kCoordinator);
  // A request names a graph by the bytes of its file: another path to equal bytes is the same request, and other bytes
  // at the same path are another request.
  BundleRequest copy = request_;
  copy.graph = root_ + "/copy.graph";
  fs::copy(request_.graph, copy.graph);
  EXPECT_EQ(client.load(copy, {})->from, BundleFrom::kProcess);
  ASSERT_TRUE(write_file(copy.graph, program_.graph_text + " ").ok());
  EXPECT_EQ(client.load(copy, {})->from, BundleFrom::kCoordinator);
  ClientOptions elsewhere = options();
  elsewhere.identity = "another coordinator";
  EXPECT_EQ(Client(elsewhere).load(request_, {})->from, BundleFrom::kCoordinator);
}

TEST_F(FetchTest, ReturnsByTheDeadlineAndGoesOn) {
  Client client(options());
  const auto late = client.load(request_, in(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_EQ(client.load(request_, in(0), fallback_)->from, BundleFrom::kFallback);
  answers_.count_down();
  // The answer may be on disk before this call looks for it, since the first call's request went on.
  EXPECT_THAT(client.load(request_, {})->from, AnyOf(BundleFrom::kCoordinator, BundleFrom::kDisk));
  EXPECT_EQ(client.load(request_, {})->from, BundleFrom::kProcess);
  EXPECT_EQ(asked_, 1);
}

TEST_F(FetchTest, AsksOnceForManyThreads) {
  Client client(options());
  std::vector<std::jthread> threads;
  std::atomic<int> loaded = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto found = client.load(request_, {});
      loaded += found.ok() ? 1 : 0;
    });
  answers_.count_down();
  threads.clear();
  EXPECT_EQ(loaded, 8);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(FetchTest, SaysWhatTheCoordinatorSaidAndLeavesItAlone) {
  answers_.count_down();
  error_ = absl::NotFoundError("no record of the key");
  ClientOptions patient = options();
  patient.pause = std::chrono::hours(1);
  Client client(patient);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.load(request_, {}).status(), error_);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(client.load(request_, {}, fallback_)->from, BundleFrom::kFallback);
  Client hasty(options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hasty.load(request_, {}).status(), error_);
  EXPECT_EQ(asked_, 4);
  EXPECT_TRUE(entries().empty());
}

TEST_F(FetchTest, EndsWhileItAsks) {
  auto client = std::make_unique<Client>(options());
  EXPECT_FALSE(client->load(request_, in(0)).ok());
  client.reset();  // the client's destructor hangs unless it stops the pending request
  EXPECT_EQ(entries().size(), 0u);
}

TEST_F(FetchTest, DamagedEntriesAreAskedForAgain) {
  answers_.count_down();
  ASSERT_TRUE(Client(options()).load(request_, {}).ok());
  const fs::path object = entries().at(0) / "kernels/wl_k.so";
  std::string bytes = read_file(object.string()).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(object.string(), bytes).ok());
  Client client(options());
  EXPECT_EQ(client.load(request_, {})->from, BundleFrom::kCoordinator);
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(FetchTest, OldEntriesServeAndAreRenewed) {
  answers_.count_down();
  ASSERT_TRUE(Client(options()).load(request_, {}).ok());
  ClientOptions impatient = options();
  impatient.fresh = std::chrono::seconds(0);
  {
    Client client(impatient);
    EXPECT_EQ(client.load(request_, in(0))->from, BundleFrom::kDisk);
    while (entries().size() < 2) std::this_thread::yield();
  }
  const int before = asked_;
  ClientOptions never = options();
  never.fresh = std::nullopt;
  EXPECT_EQ(Client(never).load(request_, in(0))->from, BundleFrom::kDisk);
  EXPECT_EQ(asked_, before);
}

TEST_F(FetchTest, RemovesWhatWasUsedLeastRecentlyAndNobodyHolds) {
  answers_.count_down();
  ClientOptions small = options();
  small.cache_bytes = 1;
  Client holder(small);
  const auto held = holder.load(request_, {});
  ASSERT_TRUE(held.ok());
  BundleRequest other = request_;
  for (int64_t trials = 1; trials <= 3; ++trials) {
    other.trials = trials;
    ASSERT_TRUE(Client(small).load(other, {}).ok());
  }
  // Two entries remain in the cache: the one that `holder` uses, and the one that was added last, which was in use by
  // the client that added it when entries were removed.
  EXPECT_EQ(entries().size(), 2u);
  auto model = Model::of(held->bundle);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Client(small).load(request_, {})->from, BundleFrom::kDisk);
  EXPECT_EQ(asked_, 4);
}

TEST_F(FetchTest, ATemporaryCacheEndsWithItsLastUser) {
  answers_.count_down();
  ClientOptions own = options();
  own.cache = temporary_cache().value();
  EXPECT_EQ(fs::status(own.cache.folder).permissions(), fs::perms::owner_all);
  absl::StatusOr<Client::Found> found = absl::UnknownError("");
  found = Client(std::move(own)).load(request_, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const fs::path folder = found->bundle->buckets()[0].folder;
  EXPECT_TRUE(fs::exists(folder));
  EXPECT_TRUE(Model::of(found->bundle).ok());
  found = absl::UnknownError("");
  EXPECT_FALSE(fs::exists(folder.parent_path().parent_path()));
}

TEST_F(FetchTest, RefusesWhatCannotBe) {
  answers_.count_down();
  Client client(options());
  EXPECT_THAT(client.load({}, {}).status().message(), HasSubstr("either a graph file or the key"));
  BundleRequest both = request_;
  both.key = "k";
  EXPECT_THAT(client.load(both, {}).status().message(), HasSubstr("found both"));
  BundleRequest missing = request_;
  missing.graph = root_ + "/none.onnx";
  EXPECT_THAT(client.load(missing, {}).status().message(), HasSubstr("none.onnx"));
  BundleRequest negative = request_;
  negative.trials = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(client.load(negative, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client.load(request_, {}, root_ + "/nothing").status()));
  ClientOptions alone = options();
  alone.ask = nullptr;
  alone.cache.folder = root_ + "/empty";
  EXPECT_THAT(Client(alone).load(request_, {}).status().message(), HasSubstr("no coordinator is named"));
  EXPECT_EQ(Client(alone).load(request_, {}, fallback_)->from, BundleFrom::kFallback);
  ClientOptions unwritable = options();
  unwritable.cache.folder = request_.graph;  // the folder of the cache is the path of a file
  {
    Client client_without(unwritable);
    const auto found = client_without.load(request_, {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->from, BundleFrom::kCoordinator);
    EXPECT_EQ(client_without.load(request_, {})->from, BundleFrom::kProcess);
  }
}

TEST_F(FetchTest, ACacheIsItsUsersAlone) {
  const std::string folder = root_ + "/deep/cache";
  ASSERT_TRUE(open_cache(folder).ok());
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(open_cache(folder).ok());
  fs::permissions(folder, fs::perms::owner_all | fs::perms::group_write);
  EXPECT_THAT(open_cache(folder).status().message(), HasSubstr("may be written by others"));
  EXPECT_TRUE(absl::IsInvalidArgument(open_cache(request_.graph).status()));  // the path names a file, not a folder
  EXPECT_TRUE(absl::IsInvalidArgument(open_cache(request_.graph + "/cache").status()));
  if (::geteuid() == 0) {
    fs::permissions(folder, fs::perms::owner_all);
    ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
    EXPECT_THAT(open_cache(folder).status().message(), HasSubstr("belongs to another user"));
  }
}

}  // namespace
}  // namespace wl
