// Calls that wait: long polls of workers and watches of clients. They occupy no threads, and end when their caller
// disconnects.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <latch>
#include <list>
#include <mutex>
#include <thread>

#include "tests/server/service.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);

int connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ADD_FAILURE() << strerror(errno);
  return fd;
}

// Relays the bytes of one connection between a client and a server. cut() closes the connection to the server, as the
// death of the client would.
class Relay {
 public:
  Relay(const std::string& path, const std::string& server) : server_(server) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener_, 1) != 0 ||
        pipe(stop_.data()) != 0)
      ADD_FAILURE() << strerror(errno);
    thread_ = std::jthread([this] { carry(); });
  }
  ~Relay() {
    cut();
    for (int fd : {listener_, stop_[0], stop_[1]}) close(fd);
  }
  void cut() {
    if (!thread_.joinable()) return;
    if (write(stop_[1], "x", 1) != 1) ADD_FAILURE() << strerror(errno);
    thread_.join();
  }

 private:
  void carry() {
    std::array<pollfd, 3> ends = {pollfd{stop_[0], POLLIN, 0}, pollfd{listener_, POLLIN, 0}, pollfd{-1, POLLIN, 0}};
    if (poll(ends.data(), 2, -1) < 0 || ends[0].revents != 0) return;
    ends[1].fd = accept(listener_, nullptr, nullptr);
    ends[2].fd = connect_to(server_);
    std::array<char, 65536> bytes;
    for (bool open = true; open;) {
      if (poll(ends.data(), ends.size(), -1) < 0 || ends[0].revents != 0) break;
      for (int from : {1, 2}) {
        if (ends[from].revents == 0) continue;
        const ssize_t size = read(ends[from].fd, bytes.data(), bytes.size());
        open &= size > 0 && write(ends[3 - from].fd, bytes.data(), static_cast<size_t>(size)) == size;
      }
    }
    close(ends[1].fd);
    close(ends[2].fd);
  }

  const std::string server_;
  int listener_ = -1;
  std::array<int, 2> stop_ = {-1, -1};
  std::jthread thread_;
};

v1::AcquireLeasesRequest long_poll(const std::string& name) {
  v1::AcquireLeasesRequest request;
  request.set_worker(name);
  request.set_epoch(1);
  request.set_max(1);
  request.set_wait_s(55);
  return request;
}

// Waits until a worker counts as alive or, if not `wanted`, as gone. Returns whether that happened within kPatience.
bool becomes(bool wanted, Service& service, const std::string& name) {
  const auto give_up = Clock::now() + kPatience;
  while (service.is_alive(name) != wanted) {
    if (Clock::now() > give_up) return false;
  }
  return true;
}

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  return -1;
}

TEST(LongPoll, OfADeadClientGetsNoLease) {
  Scratch scratch;
  // The lease time is so short that a worker counts as alive only while a call of it waits.
  Service service(scratch.path("a.db"), /*lease_s=*/0.01, "unix:" + scratch.path("s"));
  const std::string dead = cat("uid:", getuid(), "/dead");  // the name of a worker that calls over the unix socket
  service.register_worker(dead);
  service.register_worker("live");
  ASSERT_TRUE(becomes(false, service, dead));

  Relay relay(scratch.path("r"), scratch.path("s"));
  const auto own = v1::WorkerService::NewStub(dial("unix:" + scratch.path("r")));
  grpc::ClientContext context;
  v1::AcquireLeasesResponse answer;
  std::latch over(1);
  const v1::AcquireLeasesRequest request = long_poll(dead);
  own->async()->AcquireLeases(&context, &request, &answer, [&](const grpc::Status&) { over.count_down(); });
  ASSERT_TRUE(becomes(true, service, dead));
  relay.cut();
  over.wait();
  EXPECT_TRUE(becomes(false, service, dead)) << "its call still waits";

  ASSERT_TRUE(service.create("r", trials(8)).ok());
  const v1::Lease lease = service.acquire("live");
  EXPECT_FALSE(lease.lease_id().empty());
  EXPECT_EQ(lease.attempt(), 1) << "somebody had it before";
}

// Reads the stream of a job's states, counts the states and keeps the last one.
class Watcher : public grpc::ClientReadReactor<v1::Job> {
 public:
  Watcher(v1::TuningService::Stub& tuning, const std::string& job) {
    v1::WatchJobRequest request;
    request.set_name(job);
    request_ = request;
    tuning.async()->WatchJob(&context_, &request_, this);
    StartRead(&message_);
    StartCall();
  }
  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (!ok) return;
    last_ = message_;
    ++count_;
    changed_.notify_all();
    StartRead(&message_);
  }
  void OnDone(const grpc::Status&) override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void cancel() { context_.TryCancel(); }
  bool wait_first() {
    return wait([this] { return count_ > 0; });
  }
  bool wait_over() {
    return wait([this] { return over_; });
  }
  v1::Job last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, testing::patience(60), condition);
  }
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::Job message_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  v1::Job last_;
  int count_ = 0;
  bool over_ = false;
};

// All streams and long polls of this test stay open at the same time.
TEST(Calls, ThatWaitNeedNoThreads) {
  // A slow build has fewer streams and polls, since the thread sanitizer makes a report for each message; the reports
  // are suppressed, but take time.
  const bool slow = testing::is_slow_build();
  const size_t streams = slow ? 40 : 1000;
  const int64_t polls_at_once = slow ? 8 : 200;
  Scratch scratch;
  Service service(scratch.path("a.db"), 15, "unix:" + scratch.path("s"));
  const auto channel = dial("unix:" + scratch.path("s"));
  const auto tuning = v1::TuningService::NewStub(channel);
  const auto workers = v1::WorkerService::NewStub(channel);
  TuneOptions options = trials(8);
  options.device->name = "another machine";  // no worker of this test has this machine
  const auto job = service.create("r", options);
  ASSERT_TRUE(job.ok()) << job.status();

  std::list<Watcher> watchers;
  watchers.emplace_back(*tuning, job->name);
  ASSERT_TRUE(watchers.back().wait_first());
  const int before = threads_of_this_process();
  while (watchers.size() < streams) watchers.emplace_back(*tuning, job->name);
  struct Poll {
    grpc::ClientContext context;
    v1::AcquireLeasesRequest request;
    v1::AcquireLeasesResponse answer;
    grpc::Status status;
  };
  std::list<Poll> polls;
  std::latch answered(polls_at_once);
  for (int i = 0; i < polls_at_once; ++i) {
    const std::string name = cat("uid:", getuid(), "/w", i);
    service.register_worker(name);
    Poll& poll = polls.emplace_back();
    poll.request = long_poll(name);
    workers->async()->AcquireLeases(&poll.context, &poll.request, &poll.answer, [&](const grpc::Status& status) {
      poll.status = status;
      answered.count_down();
    });
  }
  for (Watcher& watcher : watchers) ASSERT_TRUE(watcher.wait_first());
  EXPECT_LT(threads_of_this_process(), before + 64);

  ASSERT_TRUE(service.cancel(job->name));
  for (Watcher& watcher : watchers) ASSERT_TRUE(watcher.wait_over());
  for (Watcher& watcher : watchers) EXPECT_EQ(watcher.last().state(), v1::JOB_STATE_CANCELLED);
  service.coordinator.stop();
  answered.wait();
  for (const Poll& poll : polls) EXPECT_EQ(poll.status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A compiler that does not plan before its gate opens.
class GatedCompiler : public FakeCompiler {
 public:
  absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine, const std::string& name,
                                            const CoverPrices& prices, Work* work) const override {
    gate.wait();
    return FakeCompiler::covers(graph, machine, name, prices, work);
  }
  mutable std::latch gate{1};
};

// After a restart, a coordinator sends nothing to the clients that watch a job until it has resumed this job.
TEST(Watch, IsQuietWhileAJobIsBeingTakenUp) {
  Scratch scratch;
  std::vector<std::string> names;
  {
    Service service(scratch.path("a.db"));
    for (int i = 0; i < 2; ++i) names.push_back(service.create(cat("r", i), trials(8 + i))->name);
  }
  GatedCompiler compiler;
  Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
  std::list<Watcher> watchers;
  for (const std::string& name : names) watchers.emplace_back(*service.tuning, name);
  for (Watcher& watcher : watchers) EXPECT_TRUE(watcher.wait_first());
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    v1::ListJobsResponse jobs;
    ASSERT_TRUE(service.tuning->ListJobs(&context, {}, &jobs).ok());
  }
  for (Watcher& watcher : watchers) EXPECT_LT(watcher.count(), 5) << "nothing has changed";
  compiler.gate.count_down();
  for (const std::string& name : names) EXPECT_TRUE(service.cancel(name));
  for (Watcher& watcher : watchers) {
    EXPECT_TRUE(watcher.wait_over());
    EXPECT_EQ(watcher.last().state(), v1::JOB_STATE_CANCELLED);
  }
}

}  // namespace
}  // namespace wl
