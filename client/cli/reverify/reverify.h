// The command reverify: verifies stored kernels again that were made with other compilers or another driver, and shows
// the outcomes.
#pragma once

#include <string>

#include "client/cli/cli.h"

namespace wl {

struct ReverifyOptions {
  std::string target;             // target or family of targets whose kernels are verified again; empty: any
  bool again = false;             // whether kernels that were lost, or left out by a cancelled job, are verified too
  bool status = false;            // whether nothing is begun, and only the outcomes so far are shown
  bool watch = false;             // whether to wait until everything is verified
  int most = 100;                 // largest number of outcomes that are shown
  std::string json;               // path of the JSON report; "-": stdout; empty: no report is written
  std::string progress = "auto";  // form of the progress display: "auto", "plain" or "json"
};

absl::StatusOr<int> reverify_command(Context& context, const ReverifyOptions& options);

}  // namespace wl
