// The commands of `warploom`. They reach a coordinator through Service only. What only the composition root can provide
// (a coordinator and a worker in this process, the compilers of this machine) is passed in as Local.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/remote/graph_file.h"
#include "client/remote/report.h"
#include "client/remote/service.h"

namespace wl {

// What a machine reaches at most.
struct Limits {
  double gflops = 0;                                  // of f32; 0: nothing is known
  std::vector<std::pair<std::string, double>> rates;  // GB/s by the name of the memory, the farthest first
  bool measured = false;                              // by a worker; else they are the rates of the cost model
};

// This machine, used without a remote coordinator. Each part starts when it is first needed, so that an answer from the
// store costs no more than opening the store.
class Local {
 public:
  virtual ~Local() = default;
  // Starts a coordinator in this process on the store and returns a channel to it. Call it once. Waits while other
  // commands use the store, for an hour at most.
  virtual absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string& store) = 0;
  // Describes this machine's CPU.
  virtual const Device& device() = 0;
  // Returns the device of this machine that runs code for `target`: its CPU (for simulated GPUs too) or its first GPU
  // of the target's family. Unavailable: there is no such GPU; the message says why and what to do. Without `must_run`
  // a missing GPU is described by its target's row, so that the compiler's output for it can be shown.
  virtual absl::StatusOr<Device> device_for(const std::string& target, bool must_run) = 0;
  // Columns of the panels in which products of a target find their weights; none: in their own order. `here`: "cpu" is
  // this machine's CPU; otherwise nobody knows which machine will run a job, and the widest are taken.
  virtual std::vector<int64_t> panels(const std::string& target, bool here) = 0;
  // Starts a worker for the coordinator of open(), which measures first how fast this machine is if `rates` asks for
  // it. Repeated calls do nothing.
  virtual absl::Status start_worker(bool rates) = 0;
  // Requested once that worker has ended by itself, since it cannot measure; worker_error() then says why.
  virtual std::stop_token worker_ended() const { return {}; }
  virtual absl::Status worker_error() const { return absl::OkStatus(); }
  // Returns the assembly text of a kernel, compiled on this machine.
  virtual absl::StatusOr<std::string> assemble(const Source& source) = 0;
  // Returns the object of a kernel, compiled on this machine as a worker compiles what is promoted: the same compiler
  // makes the same bytes of it. InvalidArgument, Unavailable: it cannot be compiled here, and why.
  virtual absl::StatusOr<std::string> build(const Source& source) = 0;
  // The compiler of this machine for a source, as compiler_of() finds it in an environment; empty: there is none.
  virtual std::string compiler_for(const Source& source) = 0;
  // The compilers' options for a target: those for the instructions of a CPU; for a GPU, all. InvalidArgument: kernels
  // of this target are not compiled by options.
  virtual absl::StatusOr<std::vector<std::string>> flags_of(const std::string& target) = 0;
  // What a device reaches at most, by the cost model's rates.
  virtual absl::StatusOr<Limits> limits_of(const Device& device) = 0;
  // A row of the target table: what compiles and what runs code for it on this machine ("" when nothing does), and what
  // is missing.
  struct TargetRow {
    std::string name, compilers, runs_on, missing;
  };
  virtual std::vector<TargetRow> targets() = 0;
  // The GPUs that this machine's drivers show, by name ("cuda:0"), and why a family has none.
  struct Gpus {
    std::vector<std::pair<std::string, Device>> found;
    std::vector<std::string> missing;
  };
  virtual Gpus gpus() = 0;
};

// Executes the command, and returns the exit code.
int run_cli(Options options, Local& local);

// One function per command, selected by Options::command. exit_code_of() maps a Status to the exit code.
struct Context {
  Options options;
  Local& local;
  Service service;
  bool embedded = true;
  GroupCurves curves = {};  // of what was followed
};
absl::StatusOr<int> tune_command(Context& context);  // implements the commands tune and watch
absl::StatusOr<int> get_command(Context& context);
absl::StatusOr<int> batch_command(Context& context);
absl::StatusOr<int> reverify_command(Context& context);
absl::StatusOr<int> top_command(Context& context);
absl::StatusOr<int> run_command(Context& context);
absl::StatusOr<int> export_command(Context& context);
absl::StatusOr<int> report_command(Context& context);
absl::StatusOr<int> inspect_command(Context& context);
absl::StatusOr<int> list_command(Context& context);  // implements the commands of operate.cpp
absl::StatusOr<int> targets_command(const Options& options, Local& local);

// The folder of the bundle in options.input that the bound extents or the given inputs select.
absl::StatusOr<std::string> folder_of_size(const Options& options);
// Reads the graph in options.input, with these extents and as the options say.
absl::StatusOr<GraphFile> read_input(const Context& context, const Bind& bind);
// Where the objects of records come from: the coordinator or, with --build-locally or where nobody but its workers
// gives a word for one (client/remote/trust.h), their sources. DataLoss: the same compiler made other bytes of a source
// here. PermissionDenied: such an object cannot be built here, and --trust-workers was not said.
FetchObject objects_of(Context& context);
// Creates the job of a graph and returns it when it is done. If `search` is false, only the store is asked, and the Job
// may be kNotCached.
absl::StatusOr<Job> ask(Context& context, const GraphFile& file, bool search);
// How a job is awaited. A budget, which counts from `begun`, holds without a worker and without a coordinator too.
struct Await {
  double budget_s = 0;  // 0: none
  std::chrono::system_clock::time_point begun = {};
  std::function<void(const Job&)> on_change;         // gets every state of the job
  std::function<void(bool lost)> on_lost;            // the coordinator disappeared, or is back
  std::function<void(const std::string&)> say = {};  // for people, why it takes so long; on another thread
  std::stop_token stop = {};                         // ends the waiting, not the job
};
// Waits until a job is done and returns it. Unavailable: its budget is over and there was no worker, or the coordinator
// did not come back, or no worker served it for as long as --wait-for-worker says. Cancelled: how.stop was requested.
absl::StatusOr<Job> await_job(Context& context, const Job& job, const Await& how);
// For embedded mode: cancels the other jobs of the store. Their processes have ended and nobody waits for their
// results, and they would take the worker's time. Their trials stay, and searches that they share with the job `mine`
// continue.
absl::Status end_orphans(Context& context, const std::string& mine);
// Writes a report of one size as a page of HTML to options.html, if that is not empty. Its picture is of what
// `result`, which the report is of, launches.
absl::Status write_page(Context& context, const SizedReport& report, const JobResult& result);
// Writes to a file, or to stdout if `where` is "-". Does nothing if `where` is empty.
absl::Status write_report(const std::string& where, const std::string& text);
// Returns a path in the user's cache folder. Error when neither XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> default_store();

}  // namespace wl
