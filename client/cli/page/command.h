// The command report.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/cli/options.h"

namespace wl {

struct PageOptions {
  std::string bundle;  // folder of the bundle
  BindValues bind;     // selects one size of the bundle
  std::string html;    // path of the HTML page
};

absl::StatusOr<int> report_command(Context& context, const PageOptions& options);

}  // namespace wl
