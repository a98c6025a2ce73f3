// The addresses on which a coordinator listens, its errors when it cannot listen, and its report of the process's
// memory.
#include "server/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/admin.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

CoordinatorOptions at(const std::string& store, const std::string& listen) {
  CoordinatorOptions options;
  options.store = store;
  options.listen = listen;
  return options;
}

absl::Status ask(const std::string& address) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  warploom::v1::ServerInfo info;
  return from_grpc(warploom::v1::Admin::NewStub(dial(address))->GetServerInfo(&context, {}, &info));
}

TEST(Coordinator, ListensOnASocketFileAndTakesOverADeadOne) {
  Scratch scratch;
  const std::string address = "unix:" + scratch.path("s");
  for (int round = 0; round < 2; ++round) {
    Coordinator coordinator;
    ASSERT_TRUE(coordinator.start(at(scratch.path("a.db"), address)).ok());
    EXPECT_TRUE(ask(address).ok());
    Coordinator second;
    const absl::Status status = second.start(at(scratch.path("b.db"), address));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
  }
}

TEST(Coordinator, APortInUseIsReported) {
  Scratch scratch;
  Coordinator first;
  ASSERT_TRUE(first.start(at(scratch.path("a.db"), "127.0.0.1:0")).ok());
  const std::string address = cat("127.0.0.1:", first.port());
  EXPECT_TRUE(ask(address).ok());
  Coordinator second;
  const absl::Status status = second.start(at(scratch.path("b.db"), address));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
}

TEST(Coordinator, RefusesAddressesOfOtherMachinesAndWrongOnes) {
  Scratch scratch;
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "192.0.2.1:7", "nonsense", ":1", "127.0.0.1:x", "127.0.0.1:99999", "unix:"}) {
    Coordinator coordinator;
    EXPECT_EQ(coordinator.start(at(scratch.path("a.db"), address)).code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

// The memory that GetServerInfo reports grows when the process allocates memory.
TEST(Coordinator, SaysWhatItsProcessHolds) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const warploom::v1::ServerInfo before = service.server_info();
  constexpr size_t kMore = 64 << 20;
  const std::vector<char> more(kMore, 'x');
  const warploom::v1::ServerInfo after = service.server_info();
  // This comparison reads `more`, so that the compiler does not remove the allocation.
  EXPECT_EQ(std::count(more.begin(), more.end(), 'x'), static_cast<ptrdiff_t>(kMore));
  // A growth by half of kMore suffices, since other threads of the process may free memory meanwhile.
  EXPECT_GT(after.resident_bytes(), before.resident_bytes() + static_cast<int64_t>(kMore / 2));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_EQ(after.heap_bytes(), 0);  // not measured, since sanitizers replace the C library's allocator
#else
  EXPECT_GT(after.heap_bytes(), before.heap_bytes() + static_cast<int64_t>(kMore / 2));
#endif
}

// The second job of a graph finds all its kernels in the store. After a restart, the coordinator's counts of groups
// begin at 0 again, but it still tells how many trials each job had.
TEST(Coordinator, SaysWhatItsStoreHadForJobs) {
  Scratch scratch;
  TuneOptions asked;
  asked.trials = 8;
  int64_t groups = 0, trials = 0;
  {
    Service service(scratch.path("a.db"));
    FakeWorker worker(service.channel, "one");
    const Job job = service.run("first", asked);
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    groups = static_cast<int64_t>(job.result->groups.size());
    trials = job.progress.trials_done;
    ASSERT_GE(trials, 8);
    warploom::v1::ServerInfo info = service.server_info();
    EXPECT_EQ(info.groups_found(), 0);
    EXPECT_EQ(info.groups_missed(), groups);
    EXPECT_EQ(info.saved_s(), 0);
    ASSERT_EQ(service.run("second", asked).state, JobState::kSucceeded);
    info = service.server_info();
    EXPECT_EQ(info.groups_found(), groups);
    EXPECT_EQ(info.groups_missed(), groups);
    EXPECT_GT(info.saved_s(), 0);
  }
  Service service(scratch.path("a.db"));
  EXPECT_EQ(service.server_info().groups_missed(), 0);
  grpc::ClientContext context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(service.tuning->ListJobs(&context, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 2);
  EXPECT_EQ(jobs.jobs(0).progress().trials_done(), 0) << "the newest, which was answered from the store";
  EXPECT_EQ(jobs.jobs(1).progress().trials_done(), trials);
}

TEST(Coordinator, ListensOnSeveralAddresses) {
  Scratch scratch;
  Coordinator coordinator;
  ASSERT_TRUE(
      coordinator.start(at(scratch.path("a.db"), "127.0.0.1:0,localhost:0,unix:" + scratch.path("s 100%"))).ok());
  const std::vector<std::string> addresses = coordinator.addresses();
  ASSERT_EQ(addresses.size(), 3);
  EXPECT_EQ(addresses[0], cat("127.0.0.1:", coordinator.port()));
  for (const std::string& address : addresses) EXPECT_TRUE(ask(address).ok()) << address;
}

}  // namespace
}  // namespace wl
