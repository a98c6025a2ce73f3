// Performs the command of a command line.
#pragma once

#include "client/cli/cli.h"
#include "client/cli/line/options.h"

namespace wl {

// Executes the command, and returns the exit code.
int run_cli(Options options, Local& local);

}  // namespace wl
