// The commands and their options as a CLI11 application, from which parsing, completion and manual pages are made.
#pragma once

#include "CLI/CLI.hpp"
#include "client/cli/line/options.h"

namespace wl {

// Adds every command to `app`. Parsing sets `options`, which must outlive `app`.
void add_commands(CLI::App& app, Options& options);

}  // namespace wl
