// The commands run, inspect and targets.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/cli/options.h"
#include "client/cli/run.h"

namespace wl {

struct RunCommandOptions {
  GraphOptions graph;  // `file` may also be the folder of a bundle
  TrustOptions trust;
  RunOptions run;
  std::string json;  // path of the JSON report; "-": stdout; empty: no report is written
};

struct InspectOptions {
  GraphOptions graph;           // `file` may also be the folder of a bundle
  std::string stage = "graph";  // stage of the compiler whose result is shown
  bool simplify_only = false;   // whether the graph is only simplified, and not cut into groups
  bool why = false;             // whether to explain why each group was chosen
  std::string svg;              // path of the file to which the graph's groups are drawn; empty: none
};

struct TargetsOptions {
  std::string json;  // path of the JSON report; "-": stdout; empty: no report is written
};

absl::StatusOr<int> run_command(Context& context, const RunCommandOptions& options);
absl::StatusOr<int> inspect_command(Context& context, const InspectOptions& options);
absl::StatusOr<int> targets_command(Local& local, const TargetsOptions& options);

}  // namespace wl
