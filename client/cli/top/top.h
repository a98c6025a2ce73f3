// The command top: shows the jobs and workers of a coordinator, again and again.
#pragma once

#include <string>

#include "client/cli/cli.h"

namespace wl {

struct TopOptions {
  bool once = false;      // whether the state is shown once and the command ends
  double interval_s = 1;  // seconds between two snapshots
  std::string json;  // path of the file to which a line of JSON is added for each snapshot; "-": stdout; empty: none
};

absl::StatusOr<int> top_command(Context& context, const TopOptions& options);

}  // namespace wl
