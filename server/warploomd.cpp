// warploomd: the coordinator as a program of its own.
#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <future>

#include "compiler/base/status.h"
#include "server/coordinator.h"
#include "server/listener.h"

namespace {

constexpr int kWrongUsage = 1, kBadInput = 2, kUnreachable = 4, kInternal = 7;

int exit_code(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return kWrongUsage;
    case absl::StatusCode::kUnavailable:
      return kUnreachable;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAlreadyExists:
      return kBadInput;
    default:
      return kInternal;
  }
}

// Options that were not given on the command line.
absl::Status read_config(const std::string& file, wl::CoordinatorOptions* options) {
  try {
    const toml::table table = toml::parse_file(file);
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (name == "store" && value.is_string()) {
        if (options->store.empty()) options->store = **value.as_string();
      } else if (name == "listen" && value.is_string()) {
        if (options->listen.empty()) options->listen = **value.as_string();
      } else if (name == "ranker" && value.is_string()) {
        if (options->ranker.empty()) options->ranker = **value.as_string();
      } else if (name == "allow_remote" && value.is_boolean()) {
        options->allow_remote = options->allow_remote || **value.as_boolean();
      } else if (name == "lease_s" && value.is_number()) {
        options->lease_s = value.value<double>().value_or(options->lease_s);
      } else if (name == "check_threads" && value.is_integer()) {
        options->check_threads = static_cast<int>(**value.as_integer());
      } else if (name == "max_connections" && value.is_integer()) {
        options->max_connections = static_cast<int>(**value.as_integer());
      } else {
        return wl::invalid("configuration ", file, ": key \"", name,
                           "\": expected store, listen and ranker (text), allow_remote (true or false), lease_s, "
                           "check_threads or max_connections (a number)");
      }
    }
  } catch (const toml::parse_error& error) {
    return wl::invalid("configuration ", file, ", line ", error.source().begin.line, ": ", error.description());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  wl::CoordinatorOptions options;
  std::string config;
  bool verbose = false;
  CLI::App app("warploomd: the coordinator of Warploom. Hands out tuning work and keeps what it found.");
  app.footer("Example: warploomd --store /var/lib/warploom/store.db --listen unix:/run/warploom.sock");
  app.set_version_flag("--version", WARPLOOM_VERSION);
  app.add_option("--store", options.store, "the SQLite file that remembers everything; made when missing");
  app.add_option("--listen", options.listen, "HOST:PORT on this machine, or unix:PATH");
  app.add_option("--ranker", options.ranker,
                 "learned cost model of warploom-train; STORE.ranker, if it is there, unless said; none: no model");
  app.add_option("--config", config,
                 "TOML file with store, listen, ranker, allow_remote, lease_s, check_threads, max_connections");
  app.add_flag("--allow-remote", options.allow_remote,
               "listen on an address that other machines reach; nobody is authenticated");
  app.add_option("--lease-seconds", options.lease_s, "a worker that is silent so long loses its work")
      ->check(CLI::Range(1.0, 600.0));
  app.add_option("--max-connections", options.max_connections,
                 "connections at once, 4096 unless the limit of open files (ulimit -Hn) is lower; more are closed")
      ->check(CLI::PositiveNumber);
  app.add_flag("--verbose", verbose, "log every change");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kWrongUsage;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("warploomd"));
  spdlog::set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  // This program reports a port in use itself.
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  if (!verbose) gpr_set_log_function([](gpr_log_func_args*) {});

  const auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "warploomd: %s\n", std::string(status.message()).c_str());
    return exit_code(status);
  };
  if (!config.empty()) {
    if (const absl::Status status = read_config(config, &options); !status.ok()) return fail(status);
  }
  if (options.store.empty() || options.listen.empty()) {
    return fail(wl::invalid("--store FILE and --listen ADDR are needed, on the command line or in --config"));
  }

  // Signals are blocked before any thread starts, so that every thread leaves them to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  wl::raise_descriptor_limit();

  // What the store can no longer vouch for is not served: this process ends, and another one reads what the disk has.
  std::promise<absl::Status> broken;
  options.on_broken = [&](const absl::Status& status) {
    broken.set_value(status);
    kill(getpid(), SIGTERM);
  };
  wl::Coordinator coordinator;
  if (const absl::Status status = coordinator.start(options); !status.ok()) return fail(status);
  const std::string address =
      options.listen.starts_with("unix:")
          ? options.listen
          : wl::cat(options.listen.substr(0, options.listen.rfind(':')), ":", coordinator.port());
  spdlog::info("serving on {}, store {}", address, options.store);
  // Scripts that asked for port 0 read the port here.
  std::printf("listening on %s\n", address.c_str());
  std::fflush(stdout);

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  spdlog::info("draining");
  coordinator.stop();
  if (auto status = broken.get_future(); status.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    return fail(status.get());
  spdlog::info("stopped");
  return 0;
}
