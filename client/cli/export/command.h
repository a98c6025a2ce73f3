// The command export.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/cli/options.h"
#include "client/cli/run.h"

namespace wl {

struct ExportCommandOptions {
  std::string bundle;  // folder of the bundle
  BindValues bind;     // selects one size of the bundle
  std::string out;     // folder in which to write the export
  std::string name;    // name of the exported library; empty: derived from `out`
  bool run = false;    // whether the bundle's kernels may be run to compute what the self-test expects
  ValueOptions values;
};

absl::StatusOr<int> export_command(Context& context, const ExportCommandOptions& options);

}  // namespace wl
