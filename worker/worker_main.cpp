// warploom-worker measures candidates for a coordinator on this machine.
#include <grpc/support/log.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "compiler/base/uncaught.h"
#include "files/read.h"
#include "proto/dial.h"
#include "proto/log.h"
#include "worker/agent.h"
#include "worker/check.h"

namespace {

constexpr int kWrongUsage = 1, kNotReady = 2, kUnreachable = 4, kInternal = 7;

std::string default_runner() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (self.parent_path() / "warploom-runner").string();
}

// Logs why the program ends, and returns its exit code.
int end(int code, const std::string& why) {
  wl::log_end("warploom-worker", why);
  return code;
}

// Adds the devices of these names to the devices that the worker offers (options.devices). Returns an error message if
// this machine has no device of some name, otherwise "".
std::string offer(std::vector<std::string> names, const std::string& runner, wl::AgentOptions& options) {
  std::optional<wl::Gpus> gpus;
  const auto all_gpus = [&]() -> const wl::Gpus& {
    if (!gpus) gpus = wl::find_gpus(runner, options.measure.sandbox);
    return *gpus;
  };
  if (names == std::vector<std::string>{"all"}) {
    names = {"cpu"};
    for (const wl::Gpus::Gpu& gpu : all_gpus().found) names.push_back(gpu.name);
  }
  for (const std::string& name : names) {
    if (name == "cpu" || name == "fake") {
      wl::Device device = wl::describe_device(options.measure.sandbox);
      if (name == "fake") device.name = "fake";
      options.measure.fake = options.measure.fake || name == "fake";
      options.devices.push_back(device);
      continue;
    }
    const std::vector<wl::Gpus::Gpu>& found = all_gpus().found;
    const auto at = std::find_if(found.begin(), found.end(), [&](const auto& gpu) { return gpu.name == name; });
    if (at == found.end()) {
      std::string known = "cpu";
      for (const wl::Gpus::Gpu& gpu : found) known += ", " + gpu.name;
      std::string why = "this machine has no device " + name + "; it has " + known;
      for (const std::string& line : all_gpus().missing) why += "; " + line;
      return why;
    }
    options.devices.push_back(at->device);
    options.measure.gpus.push_back(*at);
  }
  return "";
}

struct Arguments {
  std::string server, name, runner = default_runner();
  std::vector<std::string> devices = {"cpu"};
  std::string work_dir;  // path of the folder for compiled candidates; empty: temporary_folder()
  std::string sandbox = "auto";
  double exit_when_idle_s = -1;
  bool quiet = false, verbose = false, check = false, json = false;
  std::string log_format = "text";
  wl::DialOptions dialled;
};

void add_options(CLI::App& app, Arguments& out) {
  app.footer(
      "Examples:\n  warploom-worker --server unix:/run/warploom.sock --exit-when-idle 60\n"
      "  warploom-worker --check --devices all");
  app.set_version_flag("--version", WARPLOOM_VERSION);
  app.add_option("--server", out.server, "the coordinator: HOST:PORT or unix:PATH");
  app.add_option("--tls-ca", out.dialled.tls.ca,
                 "call by TLS; file with the CA of the coordinator's certificate, in PEM");
  app.add_option("--tls-cert", out.dialled.tls.cert, "file with the certificate of this worker");
  app.add_option("--tls-key", out.dialled.tls.key, "file with its private key");
  app.add_option("--token-file", out.dialled.token_file, "has a token of this worker; or WARPLOOM_TOKEN is one");
  app.add_option("--devices", out.devices,
                 "devices to offer, separated by commas: cpu, cuda:0, hip:1 ...; all: the CPU and every GPU; or fake "
                 "(times are invented; for tests)")
      ->delimiter(',')
      ->default_str("cpu");
  app.add_option("--name", out.name,
                 "name of this worker; a new process with the same name takes over the work of the old one at once");
  app.add_option("--exit-when-idle", out.exit_when_idle_s, "stop after this many seconds without work");
  app.add_option("--runner", out.runner, "the warploom-runner program");
  app.add_option("--work-dir", out.work_dir, "folder for compiled candidates");
  app.add_option("--sandbox", out.sandbox,
                 "auto: compilers and candidates run under bubblewrap, and without it the worker does not start; none: "
                 "they may read and change what this user may, and workers and reports say so")
      ->check(CLI::IsMember({"auto", "none"}))
      ->default_str("auto");
  CLI::Option* quiet = app.add_flag("--quiet", out.quiet, "log errors only");
  app.add_flag("--verbose", out.verbose, "log every batch, and what the runner does")->excludes(quiet);
  CLI::Option* check =
      app.add_flag("--check", out.check,
                   "say what this machine has and lacks as a worker, and how fast its devices are, and "
                   "end; exit code 2: something is missing");
  app.add_flag("--json", out.json, "with --check: for programs")->needs(check);
  app.add_option("--log-format", out.log_format, "text, or json: an object of JSON in each line of the log")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

wl::MeasureOptions measure_options(const Arguments& arguments) {
  wl::MeasureOptions options;
  options.runner = arguments.runner;
  options.work_dir = arguments.work_dir;
  options.sandbox = arguments.sandbox == "none" ? wl::Sandbox::kNone : wl::Sandbox::kBubblewrap;
  return options;
}

int check(const Arguments& arguments) {
  signal(SIGPIPE, SIG_IGN);
  const wl::MachineCheck check = wl::check_machine(arguments.devices, measure_options(arguments));
  const std::string text = arguments.json ? wl::json_of(check) : wl::text_of(check);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) return kInternal;
  return check.ready() ? 0 : kNotReady;
}

}  // namespace

int main(int argc, char** argv) {
  wl::explain_uncaught("warploom-worker", kInternal);
  Arguments arguments;
  CLI::App app("warploom-worker: compiles, checks and times candidates for a coordinator, on this machine.");
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  if (arguments.work_dir.empty()) {
    const absl::StatusOr<std::string> temporary = wl::temporary_folder();
    if (!temporary.ok()) return end(kUnreachable, std::string(temporary.status().message()));
    arguments.work_dir = *temporary;
  }
  arguments.dialled.token = wl::take_token_variable();
  if (arguments.check) return check(arguments);
  if (arguments.server.empty()) {
    std::fprintf(stderr, "--server is required\nRun with --help for more information.\n");
    return kWrongUsage;
  }
  spdlog::set_level(arguments.quiet     ? spdlog::level::err
                    : arguments.verbose ? spdlog::level::debug
                                        : spdlog::level::info);
  wl::open_log("warploom-worker", arguments.log_format == "json" ? wl::LogFormat::kJson : wl::LogFormat::kText);
  gpr_set_log_function([](gpr_log_func_args*) {});
  if (access(arguments.runner.c_str(), X_OK) != 0)
    return end(kWrongUsage, "runner " + arguments.runner + ": cannot be run; name it with --runner");

  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  wl::AgentOptions options;
  options.name = arguments.name;
  options.exit_when_idle_s = arguments.exit_when_idle_s;
  options.rates = true;
  options.measure = measure_options(arguments);
  if (const absl::Status works =
          arguments.sandbox == "none" ? absl::OkStatus() : wl::sandbox_serves(arguments.work_dir);
      !works.ok())
    return end(kWrongUsage, std::string(works.message()));
  if (const std::string wrong = offer(arguments.devices, arguments.runner, options); !wrong.empty())
    return end(kWrongUsage, "--devices: " + wrong);

  const auto channel = wl::dial(arguments.server, arguments.dialled);
  if (!channel.ok()) return end(kWrongUsage, std::string(channel.status().message()));
  options.explained = [&](const absl::Status& status) {
    const absl::Status why = wl::explained(status, arguments.server, arguments.dialled);
    if (!absl::IsUnavailable(why)) return why;
    return absl::UnavailableError(wl::cat("no coordinator answers at ", arguments.server, " (", why.message(), ")"));
  };

  std::stop_source stop;
  std::thread watcher([&] {
    int number = 0;
    sigwait(&signals, &number);  // this program itself sends SIGUSR1 when the work has ended
    stop.request_stop();
  });
  const absl::Status status = wl::run_agent(*channel, options, stop.get_token());
  pthread_kill(watcher.native_handle(), SIGUSR1);
  watcher.join();
  if (status.ok()) return 0;
  if (absl::IsUnavailable(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status))
    return end(kUnreachable, std::string(status.message()));
  return end(absl::IsInvalidArgument(status) ? kWrongUsage : kInternal, std::string(status.message()));
}
