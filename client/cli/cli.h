// What the commands of `warploom` have in common. They call a coordinator through Service only. What only
// client/warploom.cpp can provide (a coordinator and a worker in this process, the compilers of this machine) is passed
// in as Local.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/program/bucket.h"
#include "client/remote/graph_file.h"
#include "client/remote/report.h"
#include "client/remote/service.h"

namespace wl {

// The peak rates of a machine, from which rooflines are drawn.
struct Limits {
  double gflops = 0;                                  // peak rate of f32 in Gflop/s; 0: no peak rate is known
  std::vector<std::pair<std::string, double>> rates;  // name and GB/s of each memory, the farthest from the CPU first
  bool measured = false;  // whether a worker measured the peak rates; false: they are the cost model's
};

// This machine, for embedded mode. Each part (coordinator, worker) starts when it is first needed, so that an answer
// from the store costs no more than opening the store.
class Local {
 public:
  virtual ~Local() = default;
  // Starts a coordinator in this process on the store and returns a channel to it. Must be called only once. Waits up
  // to an hour while other commands use the store.
  virtual absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string& store) = 0;
  // Describes this machine's CPU.
  virtual const Device& device() = 0;
  // Returns the device of this machine that runs code for `target`: its CPU (for simulated GPUs too) or its first GPU
  // of the target's family. Unavailable: there is no such GPU; the message says why and what to do. Without `must_run`,
  // a device with the properties in the table of targets stands for a missing GPU, so that the compiler's output for it
  // can be shown.
  virtual absl::StatusOr<Device> device_for(const std::string& target, bool must_run) = 0;
  // Returns the widths of the panels in which weights of products are stored for a target, as panels_for() does.
  // `here`: whether "cpu" means this machine's CPU; if not, any machine may run the job, and the panels for "cpu" are
  // those of AVX-512.
  virtual std::vector<int64_t> panels(const std::string& target, bool here) = 0;
  // Starts a worker for the coordinator of open(). `rates`: whether the worker also measures the machine's peak rates.
  // Further calls do nothing. Unavailable: the runner or a compiler is missing.
  virtual absl::Status start_worker(bool rates) = 0;
  // Says which part of the time the worker of start_worker() may use the machine, above 0 and at most 1. Called before.
  virtual void use_share(double) {}
  // Returns a token that is requested when the worker of start_worker() has ended by itself, because it cannot measure;
  // worker_error() then says why.
  virtual std::stop_token worker_ended() const { return {}; }
  virtual absl::Status worker_error() const { return absl::OkStatus(); }
  // Returns the assembly text of a kernel, compiled on this machine.
  virtual absl::StatusOr<std::string> assemble(const Source& source) = 0;
  // Returns the object of a kernel, compiled on this machine as a worker compiles kernels that are promoted, so the
  // same compiler makes the same bytes. InvalidArgument or Unavailable: it cannot be compiled here.
  virtual absl::StatusOr<std::string> build(const Source& source) = 0;
  // Returns the compiler of this machine for a source, in the form in which compiler_of() extracts it from an
  // environment; empty: there is none.
  virtual std::string compiler_for(const Source& source) = 0;
  // Returns compiler options for a target: for a CPU, those that select its instructions; for a GPU, all options.
  // InvalidArgument: no options are known for this target.
  virtual absl::StatusOr<std::vector<std::string>> flags_of(const std::string& target) = 0;
  // Returns the peak rates of a device in the cost model.
  virtual absl::StatusOr<Limits> limits_of(const Device& device) = 0;
  // A target: which compilers and which device of this machine compile and run code for it ("" if none does), and what
  // is missing.
  struct TargetRow {
    std::string name, compilers, runs_on, missing;
  };
  virtual std::vector<TargetRow> targets() = 0;
  // The GPUs of this machine, by name ("cuda:0"), and for each family without GPUs the reason.
  struct Gpus {
    std::vector<std::pair<std::string, Device>> found;
    std::vector<std::string> missing;
  };
  virtual Gpus gpus() = 0;
};

// What commands work with, beside their own options. Each command is a function of these two, in the header that has
// its options; client/cli/line calls it. exit_code_of() maps its Status to the exit code.
struct Context {
  ConnectionOptions connection;  // where the coordinator is; in embedded mode, `store` is the path of its store
  Local& local;
  Service service;
  bool embedded = true;
  GroupCurves curves = {};  // the search curves of the jobs that this command has followed
};

// Returns the folder of that size of a bundle which `bind` or the files of `inputs` select. `command`: the name of the
// command, for errors.
absl::StatusOr<std::string> folder_of_size(const std::string& command, const std::string& bundle,
                                           const BindValues& bind,
                                           const std::map<std::string, std::string>& inputs = {});
// Returns the only size that `bind` names; InvalidArgument: it names several. `command`: the name of the command, for
// errors.
absl::StatusOr<Bind> one_size(const std::string& command, const BindValues& bind);
// Reads the graph that `options` name, with the extents `bind` for its symbolic dimensions.
absl::StatusOr<GraphFile> read_input(const Context& context, const GraphOptions& options, const Bind& bind);
// Returns a function that gets the object of a record: from the coordinator or, with --build-locally or if the object
// is not trusted (client/remote/trust.h), by compiling the source here. DataLoss: the same compiler makes other bytes
// from the source here. PermissionDenied: an object is not trusted, and its source cannot be compiled here.
FetchObject objects_of(Context& context, const TrustOptions& trust);
// Returns a job that the coordinator answers from its store alone, without a search: its state is kNotCached if the
// store lacks a kernel.
absl::StatusOr<Job> stored_job(Context& context, const GraphFile& file, TuneOptions options);

// How await_job() waits for a job.
struct Await {
  double wait_for_worker_s = 0;  // how long the job may be without a worker, in seconds; 0: no limit
  double budget_s = 0;  // limit in seconds since `begun`, even while there is no worker or coordinator; 0: no limit
  std::chrono::system_clock::time_point begun = {};
  std::function<void(const Job&)> on_change;  // is called with every state of the job
  std::function<void(bool lost)> on_lost;     // is called when the coordinator is lost (true) or back (false)
  // Is called on another thread with a text that says why the job takes so long.
  std::function<void(const std::string&)> say = {};
  std::stop_token stop = {};  // a stop request ends the waiting, not the job
};
// Waits until a job is done and returns the job. Unavailable: its budget was used up without a result, the coordinator
// did not come back, or no worker served it for how.wait_for_worker_s. Cancelled: how.stop was requested.
absl::StatusOr<Job> await_job(Context& context, const Job& job, const Await& how);

// For embedded mode: cancels all jobs of the store but `mine`. The processes that waited for these jobs have ended, and
// the jobs would take the worker's time. Their trials stay, and searches that they share with `mine` continue.
absl::Status end_orphans(Context& context, const std::string& mine);
// Writes the report of `result` (of one size) as an HTML page to `to.html`, unless that is empty. The page has a
// picture of the graph and the kernels that the result launches. `input`: the graph or bundle as the user named it.
absl::Status write_page(Context& context, const std::string& input, const ReportOptions& to, const SizedReport& report,
                        const JobResult& result);
// Writes to a file, or to stdout if `where` is "-". Does nothing if `where` is empty.
absl::Status write_report(const std::string& where, const std::string& text);
// Returns the path of "store.db" in the user's cache folder. InvalidArgument: neither XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> default_store();

}  // namespace wl
