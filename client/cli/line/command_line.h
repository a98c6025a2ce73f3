// The commands and their options, as CLI11 has them. Parsing, completion and the manual pages are made of this.
#pragma once

#include "CLI/CLI.hpp"
#include "client/cli/options.h"

namespace wl {

// Adds every command to `app`. What is parsed goes into `options`, which must outlive it.
void add_commands(CLI::App& app, Options& options);

}  // namespace wl
