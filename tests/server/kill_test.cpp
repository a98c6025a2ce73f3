// A coordinator process is killed with SIGKILL again and again while clients create jobs and workers measure. In the
// end the store has every acknowledged job once, with its record and object.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>

#include "compiler/base/sha256.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/store/store.h"
#include "tests/server/fakes.h"
#include "tests/server/outside.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

constexpr int kClients = 16, kWorkers = 4;

// Returns a channel that reconnects within 50 ms, sooner than the channels of a fleet, so that calls succeed between
// two kills.
std::shared_ptr<grpc::Channel> eager(const std::string& address) {
  grpc::ChannelArguments arguments = channel_arguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// A coordinator in a process of its own.
class Killable {
 public:
  Killable(std::string store, std::string address) : store_(std::move(store)), address_(std::move(address)) {}
  ~Killable() { end(SIGTERM); }

  // Starts the process, and returns once it answers calls.
  void start() {
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    // The child allocates nothing between fork and exec, since another thread may have held the allocator's lock during
    // fork.
    const std::string program = cat(WARPLOOM_BIN_DIR, "/fake_coordinator");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], 1);
      ::close(out[0]);
      execl(program.c_str(), program.c_str(), store_.c_str(), address_.c_str(), "2", nullptr);
      _exit(127);
    }
    ::close(out[1]);
    char line[6] = {};
    EXPECT_EQ(read(out[0], line, 5), 5) << "it did not start";
    ::close(out[0]);
    EXPECT_STREQ(line, "ready");
  }
  void end(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    EXPECT_TRUE(signal == SIGKILL || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }

 private:
  const std::string store_, address_;
  pid_t pid_ = 0;
};

// A client that requests one job after the other, each of another graph, and remembers which jobs were acknowledged.
class Client {
 public:
  Client(const std::string& address, int number, const std::atomic<bool>* over)
      : tuning_(v1::TuningService::NewStub(eager(address))), number_(number), over_(over) {}

  void run() {
    for (int i = 0; !*over_; ++i) {
      const std::string request = cat("client ", number_, " job ", i);
      // Graphs stay small for any number of jobs, since the fake times are too short to be believed for a large graph's
      // kernels.
      const int64_t rows = 1 + number_ + kClients * i;
      v1::CreateTuningJobRequest message;
      message.set_request_id(request);
      message.set_graph(one_op(rows, 2));
      TuneOptions options;
      options.trials = 16;
      options.device = fake_device();
      *message.mutable_options() = to_proto(options);
      const std::optional<std::string> name = create(message);
      if (!name) return;
      created[request] = *name;
      if (wait(*name)) done.insert(request);
    }
  }
  std::map<std::string, std::string> created;  // names of the acknowledged jobs, by request id
  std::set<std::string> done;                  // ids of the requests whose jobs the client has seen succeed

 private:
  static std::unique_ptr<grpc::ClientContext> context() {
    auto out = std::make_unique<grpc::ClientContext>();
    out->set_wait_for_ready(true);
    out->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return out;
  }
  std::optional<std::string> create(const v1::CreateTuningJobRequest& message) {
    while (!*over_) {
      v1::Job job;
      const grpc::Status status = tuning_->CreateTuningJob(context().get(), message, &job);
      if (status.ok()) return job.name();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    }
    return std::nullopt;
  }
  bool wait(const std::string& name) {
    while (!*over_) {
      v1::WatchJobRequest request;
      request.set_name(name);
      const auto own = context();
      auto reader = tuning_->WatchJob(own.get(), request);
      v1::Job job;
      while (reader->Read(&job)) {
        EXPECT_NE(job.state(), v1::JOB_STATE_FAILED) << job.error_message();
        if (job.state() == v1::JOB_STATE_SUCCEEDED) return true;
      }
      EXPECT_NE(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND) << name << " is lost";
    }
    return false;
  }

  const std::unique_ptr<v1::TuningService::Stub> tuning_;
  const int number_;
  const std::atomic<bool>* over_;
};

// Returns a job once it has ended. Calls that fail are repeated, since the first may use a connection to a
// coordinator that has been killed.
v1::Job end_of(v1::TuningService::Stub& tuning, const std::string& name) {
  v1::WatchJobRequest watch;
  watch.set_name(name);
  v1::Job job;
  for (int failed = 0; failed < 10; ++failed) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // the newest coordinator may still be starting
    auto reader = tuning.WatchJob(&context, watch);
    while (reader->Read(&job)) {
    }
    const grpc::Status status = reader->Finish();
    if (status.ok()) return job;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << name << ": " << status.error_message();
  }
  ADD_FAILURE() << name << ": the coordinator stayed unavailable";
  return job;
}

// The test kills the coordinator 20 times in `make test`, and 500 times in `make test-long`.
TEST(Kill, NothingAcknowledgedIsLostDoubledOrTorn) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), address = "unix:" + scratch.path("s");
  const auto kills = static_cast<int>(std::clamp<int64_t>(testing::scaled(400), 20, 500));
  std::minstd_rand random(static_cast<unsigned>(testing::test_seed(7)));
  Killable coordinator(file, address);
  coordinator.start();
  std::atomic<bool> over = false;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(address, i, &over));
    threads.emplace_back([client = clients.back().get()] { client->run(); });
  }
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<FakeWorker>(eager(address), cat("w", i)));
  for (int kill = 0; kill < kills; ++kill) {
    usleep(std::uniform_int_distribution<int>(1'000, 400'000)(random));  // microseconds until the next kill, at random
    coordinator.end(SIGKILL);
    coordinator.start();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  // Jobs that are still open are finished without further kills.
  const auto tuning = v1::TuningService::NewStub(dial(address));
  std::map<std::string, v1::Job> jobs;
  size_t finished = 0;
  for (const auto& client : clients) {
    for (const auto& [request, name] : client->created) {
      const v1::Job job = end_of(*tuning, name);
      EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << request << ": " << job.error_message();
      ASSERT_EQ(job.result().groups_size(), 1) << request;
      EXPECT_TRUE(jobs.emplace(name, job).second) << "two requests share " << name;
    }
    finished += client->done.size();
  }
  workers.clear();
  coordinator.end(SIGTERM);
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM jobs WHERE state < 2"), 0);
  EXPECT_EQ(number_in(file, "SELECT count(*) - count(DISTINCT request_id) FROM jobs"), 0);
  EXPECT_GE(number_in(file, "SELECT count(*) FROM jobs"), static_cast<int64_t>(jobs.size()));
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM trials WHERE outcome = 4"), 0) << "candidates were blamed for kills";
  EXPECT_EQ(number_in(file,
                      "SELECT count(*) FROM (SELECT search_id, plan FROM trials WHERE phase = 0 "
                      "GROUP BY search_id, plan HAVING count(*) > 1)"),
            0)
      << "measured twice";
  auto store = Store::open({.file = file, .quick_check = true});
  ASSERT_TRUE(store.ok()) << store.status();
  for (const auto& [name, job] : jobs) {
    const auto record = (*store)->record_by_digest(job.result().groups(0).record_digest());
    ASSERT_TRUE(record.ok() && record->has_value()) << name;
    EXPECT_TRUE((*store)->blob((*record)->record.object_sha256)->has_value()) << name;
  }
  std::printf("%d kills, %zu jobs acknowledged, %zu of them seen to end\n", kills, jobs.size(), finished);
  // With few kills, there may be time for only one job of each client; otherwise one client must have had more.
  EXPECT_GT(jobs.size() + (testing::test_scale() < 0.25 ? 1 : 0), static_cast<size_t>(kClients));
}

}  // namespace
}  // namespace wl
