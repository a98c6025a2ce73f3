// The command batch: runs the jobs of a batch file, several at the same time, and writes a bundle for each model and
// each of its targets.
//
// The same command continues a batch that was interrupted. The request id of a job is a hash of what the job asks for
// and of the batch's id, which stays in a file beside the bundles until every job has succeeded. So the coordinator
// answers the repeated requests with the jobs that it has already.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/cli/options.h"

namespace wl {

struct BatchOptions {
  std::string file;      // path of the batch file
  int jobs_at_once = 8;  // largest number of jobs that the batch has at the coordinator at a time
  TrustOptions trust;
  JobOptions job;
  std::string json;  // path of the JSON report; "-": stdout; empty: no report is written
};

absl::StatusOr<int> batch_command(Context& context, const BatchOptions& options);

}  // namespace wl
