// Load on a coordinator with a simulated compiler, by simulated workers that take a fixed time for every batch.
//
//   fleet_load speedup [TRIALS]                   one search on one worker and on eight, five rounds of each in turn
//   fleet_load soak [WORKERS JOBS SECONDS]        WORKERS workers and JOBS jobs at once on a coordinator process: how
//                                                 busy its engine's thread is, its memory and threads, and slow calls
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <sstream>
#include <thread>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "tests/server/fakes.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "fleet_load: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Returns a graph of one op, so that a job is one search. The graph is so small that the simulated workers' times are
// above the bound of its group, the time that no kernel can beat.
std::string graph_of(int64_t rows) {
  return cat("graph {\n  %0 = input \"x\" : f32[", rows, ",2] normal(0,1)\n  %1 = exp %0 : f32[", rows,
             ",2]\n  output \"y\" %1\n}\n");
}

absl::StatusOr<std::string> create(v1::TuningService::Stub& tuning, const std::string& request, int64_t rows,
                                   int64_t trials, double deadline_s) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(static_cast<int64_t>(1000 * deadline_s)));
  v1::CreateTuningJobRequest message;
  message.set_request_id(request);
  message.set_graph(graph_of(rows));
  TuneOptions options;
  options.trials = trials;
  options.device = fake_device();
  *message.mutable_options() = to_proto(options);
  v1::Job job;
  const grpc::Status status = tuning.CreateTuningJob(&context, message, &job);
  if (!status.ok()) return from_grpc(status);
  return job.name();
}

v1::Job watch(v1::TuningService::Stub& tuning, const std::string& name) {
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_name(name);
  auto reader = tuning.WatchJob(&context, request);
  v1::Job job;
  while (reader->Read(&job)) {
  }
  (void)reader->Finish();
  return job;
}

// Returns the seconds that one search takes on a fleet whose workers take `per_batch` for each batch.
double search_on(int workers, int64_t trials, milliseconds per_batch) {
  Scratch scratch;
  const FakeCompiler compiler;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.compiler = &compiler;
  Coordinator coordinator;
  must(coordinator.start(options));
  const auto channel = coordinator.in_process_channel();
  double seconds = 0;
  {
    std::list<FakeWorker> fleet;
    for (int i = 0; i < workers; ++i)
      fleet.emplace_back(channel, cat("w", i),
                         Hooks{.before = [&](const Batch&) { std::this_thread::sleep_for(per_batch); }});
    const auto admin = v1::Admin::NewStub(channel);
    for (v1::ListWorkersResponse all; all.workers_size() < workers;) {
      grpc::ClientContext context;
      all.Clear();
      must(from_grpc(admin->ListWorkers(&context, {}, &all)));
    }
    const auto tuning = v1::TuningService::NewStub(channel);
    const auto begin = Clock::now();
    const auto name = create(*tuning, "r", 64, trials, 60);
    must(name.status());
    const v1::Job job = watch(*tuning, *name);
    seconds = seconds_since(begin);
    if (job.state() != v1::JOB_STATE_SUCCEEDED) must(absl::InternalError(job.error_message()));
  }
  coordinator.stop();
  return seconds;
}

int speedup(int64_t trials) {
  constexpr int kRounds = 5, kWorkers = 8;
  const milliseconds per_batch(100);
  std::vector<double> one, many;
  for (int round = 0; round < kRounds; ++round) {
    one.push_back(search_on(1, trials, per_batch));
    many.push_back(search_on(kWorkers, trials, per_batch));
  }
  std::sort(one.begin(), one.end());
  std::sort(many.begin(), many.end());
  std::printf("one search of %lld trials, %lld ms a batch of 8, %d rounds of each in turn (least, median):\n",
              static_cast<long long>(trials), static_cast<long long>(per_batch.count()), kRounds);
  std::printf("  1 worker   %.2f s  %.2f s\n", one[0], one[kRounds / 2]);
  std::printf("  %d workers  %.2f s  %.2f s\n", kWorkers, many[0], many[kRounds / 2]);
  std::printf("  ratio      1/%.2f  1/%.2f\n", one[0] / many[0], one[kRounds / 2] / many[kRounds / 2]);
  return 0;
}

// A coordinator in a process of its own, with functions that read the process's figures from /proc.
class Observed {
 public:
  Observed(const std::string& program, const std::string& store, const std::string& address) {
    int out[2];
    if (pipe(out) != 0) must(absl::InternalError("no pipe"));
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], 1);
      execl(program.c_str(), program.c_str(), store.c_str(), address.c_str(), "15", nullptr);
      _exit(127);
    }
    close(out[1]);
    char line[6] = {};
    if (read(out[0], line, 5) != 5) must(absl::InternalError(cat("cannot start ", program)));
    close(out[0]);
  }
  ~Observed() {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  // Returns a number of /proc/PID/status, such as "VmRSS" in kB or "Threads"; -1: the file has no such field.
  int64_t status(const std::string& field) const {
    std::ifstream file(cat("/proc/", pid_, "/status"));
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(field + ":")) return std::atoll(line.c_str() + field.size() + 1);
    return -1;
  }
  int64_t descriptors() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cat("/proc/", pid_, "/fd"))) count += entry.exists();
    return count;
  }
  // Returns the CPU time in seconds of the process's threads called `name`, or of all its threads if `name` is empty.
  double seconds_of(const std::string& name) const {
    double sum = 0;
    for (const auto& task : std::filesystem::directory_iterator(cat("/proc/", pid_, "/task"))) {
      std::ifstream comm(task.path() / "comm"), stat(task.path() / "stat");
      std::string is, text;
      std::getline(comm, is);
      std::getline(stat, text);
      if (!name.empty() && is != name) continue;
      std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
      std::string skipped;
      for (int i = 0; i < 11; ++i) fields >> skipped;
      double user = 0, system = 0;
      fields >> user >> system;
      sum += (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
    return sum;
  }

 private:
  pid_t pid_ = 0;
};

int soak(int workers, int jobs, int seconds) {
  constexpr double kDeadline = 5;
  Scratch scratch;
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_coordinator").string();
  const std::string address = "unix:" + scratch.path("s");
  Observed coordinator(program, scratch.path("a.db"), address);
  std::atomic<bool> over = false;
  std::atomic<int64_t> ended = 0, slow = 0, failed = 0, batches = 0, number = 0;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 16; ++i) {
    grpc::ChannelArguments arguments = channel_arguments();
    // gRPC lets channels with equal arguments share a connection, so each channel gets a number of its own as an
    // argument.
    arguments.SetInt("warploom.channel", i);
    channels.push_back(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }
  std::vector<std::thread> clients;
  for (int i = 0; i < jobs; ++i) {
    clients.emplace_back([&, i] {
      const auto tuning = v1::TuningService::NewStub(channels[static_cast<size_t>(i) % channels.size()]);
      while (!over) {
        const int64_t mine = ++number;
        const auto name = create(*tuning, cat("r", mine), mine, 64, kDeadline);
        slow += absl::IsDeadlineExceeded(name.status());
        failed += !name.ok();
        if (!name.ok()) continue;
        const v1::Job job = watch(*tuning, *name);
        ended += job.state() == v1::JOB_STATE_SUCCEEDED;
        failed += job.state() == v1::JOB_STATE_FAILED;
      }
    });
  }
  std::list<FakeWorker> fleet;
  for (int i = 0; i < workers; ++i) {
    fleet.emplace_back(channels[static_cast<size_t>(i) % channels.size()], cat("w", i),
                       Hooks{.before = [&](const Batch&) {
                         ++batches;
                         // The delay is proportional to the number of workers, so that the rate of batches of all
                         // workers together does not depend on that number.
                         const auto until = Clock::now() + milliseconds(5 * workers);
                         while (!over && Clock::now() < until) std::this_thread::sleep_for(milliseconds(50));
                       }});
  }
  std::printf("%d workers, %d jobs at once:\n  after  jobs   batches  memory   threads  descriptors  engine  process\n",
              workers, jobs);
  const auto begin = Clock::now();
  double engine = 0, process = 0;
  auto last = begin;
  for (int step = 1; step <= 10; ++step) {
    std::this_thread::sleep_until(begin + std::chrono::seconds(seconds) * step / 10);
    const double now_engine = coordinator.seconds_of("wl-engine"), now_process = coordinator.seconds_of("");
    const double passed = seconds_since(last);
    last = Clock::now();
    std::printf("  %4.0f s  %5lld  %7lld  %4lld MB  %7lld  %11lld  %4.0f %%  %5.0f %%\n", seconds_since(begin),
                static_cast<long long>(ended), static_cast<long long>(batches),
                static_cast<long long>(coordinator.status("VmRSS") / 1024),
                static_cast<long long>(coordinator.status("Threads")),
                static_cast<long long>(coordinator.descriptors()), 100 * (now_engine - engine) / passed,
                100 * (now_process - process) / passed);
    std::fflush(stdout);
    engine = now_engine;
    process = now_process;
  }
  over = true;
  std::printf("calls over their deadline of %.0f s: %lld; failed jobs and calls: %lld\n", kDeadline,
              static_cast<long long>(slow), static_cast<long long>(failed));
  for (std::thread& client : clients) client.join();
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::err);
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  if (what == "speedup") return wl::speedup(number(2, 512));
  if (what == "soak") return wl::soak(number(2, 1000), number(3, 200), number(4, 600));
  std::fprintf(stderr, "usage: fleet_load speedup [TRIALS] | soak [WORKERS JOBS SECONDS]\n");
  return 1;
}
