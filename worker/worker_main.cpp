// warploom-worker: measures what a coordinator hands out, on this machine.
#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "proto/rpc.h"
#include "worker/agent.h"

namespace {

constexpr int kWrongUsage = 1, kUnreachable = 4, kInternal = 7;

std::string runner_beside_me() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (self.parent_path() / "warploom-runner").string();
}

}  // namespace

int main(int argc, char** argv) {
  std::string server, devices = "cpu", name, runner = runner_beside_me();
  std::string work_dir = std::filesystem::temp_directory_path().string();
  double exit_when_idle_s = -1;
  bool quiet = false;
  CLI::App app("warploom-worker: compiles, checks and times candidates for a coordinator, on this machine.");
  app.footer("Example: warploom-worker --server unix:/run/warploom.sock --exit-when-idle 60");
  app.set_version_flag("--version", WARPLOOM_VERSION);
  app.add_option("--server", server, "the coordinator: HOST:PORT or unix:PATH")->required();
  app.add_option("--devices", devices, "what to offer: cpu, or fake (times are invented; for tests)")
      ->check(CLI::IsMember({"cpu", "fake"}));
  app.add_option("--name", name,
                 "of this worker; a new process takes over an old one's work at once under the same name");
  app.add_option("--exit-when-idle", exit_when_idle_s, "stop after so many seconds without work");
  app.add_option("--runner", runner, "the warploom-runner program");
  app.add_option("--work-dir", work_dir, "where compiled candidates lie meanwhile");
  app.add_flag("--quiet", quiet, "log errors only");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("warploom-worker"));
  spdlog::set_level(quiet ? spdlog::level::err : spdlog::level::info);
  gpr_set_log_function([](gpr_log_func_args*) {});
  if (access(runner.c_str(), X_OK) != 0) {
    std::fprintf(stderr, "warploom-worker: runner %s: cannot be run; name it with --runner\n", runner.c_str());
    return kWrongUsage;
  }

  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  wl::AgentOptions options;
  options.name = name;
  options.exit_when_idle_s = exit_when_idle_s;
  options.measure.runner = runner;
  options.measure.work_dir = work_dir;
  options.measure.fake = devices == "fake";
  wl::Device device = wl::describe_device();
  if (options.measure.fake) device.name = "fake";
  options.devices = {device};

  std::stop_source stop;
  std::thread watcher([&] {
    int number = 0;
    sigwait(&signals, &number);  // SIGUSR1: the work ended by itself
    stop.request_stop();
  });
  const absl::Status status = wl::run_agent(wl::dial(server), options, stop.get_token());
  pthread_kill(watcher.native_handle(), SIGUSR1);
  watcher.join();
  if (status.ok()) return 0;
  std::fprintf(stderr, "warploom-worker: %s\n", std::string(status.message()).c_str());
  return absl::IsUnavailable(status) ? kUnreachable : absl::IsInvalidArgument(status) ? kWrongUsage : kInternal;
}
