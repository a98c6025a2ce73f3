#include "client/cli/line/run_cli.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>

#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/process.h"
#include "client/program/files.h"
#include "proto/log.h"

namespace wl {
namespace {

constexpr std::chrono::milliseconds kGrace{700};    // how long an interrupted command may take to end by itself
constexpr std::chrono::seconds kCallPatience{120};  // time limit of one call to the coordinator
constexpr std::chrono::seconds kStarting{5};        // how long to wait for a coordinator that does not listen yet

// Converts errors of opening the store that the user named to InvalidArgument, where the exit code of the original
// error would say how a search ended.
absl::Status store_error(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) {
    return absl::InvalidArgumentError(status.message());
  }
  return status;
}

// While this object lives, Ctrl-C or SIGTERM ends the command: calls of the coordinator return with Cancelled. If the
// command has not ended after kGrace, for example since a kernel runs, the process ends with exit code 6.
class Ending {
 public:
  Ending() : guard_([this] { end(); }) {}
  ~Ending() {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void end() {
    stop_.request_stop();
    late_ = std::jthread([this] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kGrace, [this] { return over_; })) return;
      PendingFolder::remove_all();
      _exit(kExitInterrupted);
    });
  }

  std::stop_source stop_;
  std::mutex mutex_;  // guards over_
  std::condition_variable changed_;
  bool over_ = false;
  std::jthread late_;
  // The last member, and so destroyed first, because the guard calls end(), which uses the other members.
  InterruptGuard guard_;
};

absl::StatusOr<int> dispatch(Options options, Local& local, const std::stop_token& stop) {
  if (options.idle) WL_RETURN_IF_ERROR(run_when_idle());
  if (options.share > 0) {
    if (!options.connection.server.empty())
      return invalid("--share: the workers of ", options.connection.server,
                     " measure, not this machine; leave out --share or --server");
    run_with_share();
    local.use_share(options.share);
  }
  if (options.end_with != 0) WL_RETURN_IF_ERROR(end_with(options.end_with));
  const std::string& command = options.command;
  if (command == "targets") return targets_command(local, options.targets);
  ConnectionOptions& connection = options.connection;
  const bool embedded = connection.server.empty();
  // Commands that only read a bundle need no coordinator.
  const bool offline = command == "export" || (command == "run" && is_folder(options.run.graph.file));
  std::shared_ptr<grpc::Channel> channel;
  if (embedded && !offline) {
    if (connection.store.empty()) {
      WL_ASSIGN_OR_RETURN(connection.store, default_store());
    }
    auto opened = local.open(connection.store);
    if (!opened.ok()) return store_error(opened.status());
    channel = *std::move(opened);
  }
  Service service(channel, {.where = "this process", .stop = stop});
  if (!embedded) {
    std::vector<Signer> signers;
    if (!connection.signers.empty()) {
      WL_ASSIGN_OR_RETURN(signers, read_signers(connection.signers));
    }
    WL_ASSIGN_OR_RETURN(service, Service::at(connection.server, connection.dial, std::move(signers)));
    // Commands that only read the store have one time limit for all of their calls together.
    const bool only_asks = command == "get" || command == "run";
    service =
        service.limited(kCallPatience, stop,
                        only_asks ? std::optional(std::chrono::system_clock::now() + kCallPatience) : std::nullopt);
    service.await_connection(kStarting);
  }
  Context context{std::move(connection), local, std::move(service), embedded};
  if (command == "tune") return tune_command(context, options.tune);
  if (command == "watch") return watch_command(context, options.watch);
  if (command == "get") return get_command(context, options.get);
  if (command == "batch") return batch_command(context, options.batch);
  if (command == "reverify") return reverify_command(context, options.reverify);
  if (command == "top") return top_command(context, options.top);
  if (command == "run") return run_command(context, options.run);
  if (command == "export") return export_command(context, options.export_bundle);
  if (command == "report") return report_command(context, options.report);
  if (command == "inspect") return inspect_command(context, options.inspect);
  return operate_command(context, command, options.operate);
}

}  // namespace

int run_cli(Options options, Local& local) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // makes a write beyond the limit of file sizes return EFBIG
  if (options.log_format == "json") open_log("warploom", LogFormat::kJson);
  options.connection.dial.token = take_token_variable();
  const Ending ending;
  absl::StatusOr<int> code = dispatch(std::move(options), local, ending.token());
  bool flushed = std::fflush(stdout) == 0;
  if (!code.ok() && ending.token().stop_requested()) {
    std::fprintf(stderr, "warploom: interrupted\n");
    return kExitInterrupted;
  }
  if (!code.ok()) {
    std::fprintf(stderr, "%s\n", error_line(code.status()).c_str());
    return exit_code_of(code.status());
  }
  return flushed ? *code : kExitInternal;
}

}  // namespace wl
