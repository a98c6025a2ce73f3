// The commands that list jobs, records and workers of a coordinator, and those of its operator.
#pragma once

#include <string>

#include "client/cli/cli.h"

namespace wl {

struct OperateOptions {
  std::string name;  // what the command is about: a job, a key, a digest or a producer; empty: the whole coordinator
  int most = 100;    // largest number of rows in a listing
  std::string json;  // path of the JSON report; "-": stdout; empty: no report is written
};

// `command`: the name of the command, such as "jobs".
absl::StatusOr<int> operate_command(Context& context, const std::string& command, const OperateOptions& options);

}  // namespace wl
