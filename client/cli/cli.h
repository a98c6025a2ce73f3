// The commands of `warploom`. They speak to a coordinator through Service alone; what only the composition root can
// reach (a coordinator and a worker in this process, the compilers of this machine) comes in as Local.
#pragma once

#include <memory>
#include <string>

#include "client/cli/graph_file.h"
#include "client/cli/options.h"
#include "client/cli/service.h"

namespace wl {

// This machine, without a coordinator elsewhere. Everything is started when first asked for, so that an answer from the
// store costs no more than the store.
class Local {
 public:
  virtual ~Local() = default;
  // A coordinator in this process on the store; a channel to it. Once.
  virtual absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string& store) = 0;
  // What this machine is: its CPU.
  virtual const Device& device() = 0;
  // What of this machine runs code for `target`: its CPU, simulated lanes included, or its first GPU of the target's
  // family. Unavailable: it has no such GPU, why, and what to do. Without `must_run` a GPU that is not here is
  // described as its target's row is, so that what the compiler makes for it can be looked at.
  virtual absl::StatusOr<Device> device_for(const std::string& target, bool must_run) = 0;
  // Begins to work for the coordinator of open(). Repeated calls do nothing.
  virtual absl::Status start_worker() = 0;
  // Assembly text of a kernel as this machine's compiler makes it.
  virtual absl::StatusOr<std::string> assemble(const Source& source) = 0;
  // Rows of the target table: what of this machine compiles and runs code for each, "" when nothing does, and then what
  // is missing.
  struct TargetRow {
    std::string name, compilers, runs_on, missing;
  };
  virtual std::vector<TargetRow> targets() = 0;
  // The GPUs that the drivers of this machine show, "cuda:0", and why a family has none.
  struct Gpus {
    std::vector<std::pair<std::string, Device>> found;
    std::vector<std::string> missing;
  };
  virtual Gpus gpus() = 0;
};

// Parses, does, and returns the exit code.
int run_cli(int argc, const char* const* argv, Local& local);

// One function per command; Options::command names it. A Status becomes an exit code by exit_code_of().
struct Context {
  Options options;
  Local& local;
  Service service;
  bool embedded = true;
};
absl::StatusOr<int> tune_command(Context& context);  // tune, watch
absl::StatusOr<int> get_command(Context& context);
absl::StatusOr<int> run_command(Context& context);
absl::StatusOr<int> inspect_command(Context& context);
absl::StatusOr<int> list_command(Context& context);  // jobs, records, workers, cancel
absl::StatusOr<int> targets_command(const Options& options, Local& local);

// Creates the job of a graph and returns it when it is done. `search` false: what the store has, or a Job that is
// kNotCached.
absl::StatusOr<Job> ask(Context& context, const GraphFile& file, bool search);
// What a job that has no result means: a Status with the exit code's meaning.
absl::Status why_no_result(const Job& job);
// Writes to a file, or to stdout when it is "-". Nothing when it is empty.
absl::Status write_report(const std::string& where, const std::string& text);
// A path under the user's cache folder. Error when neither XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> default_store();

}  // namespace wl
