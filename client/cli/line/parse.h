// Parses the program's arguments. It has no effect but its output, and reads no files.
#pragma once

#include <variant>

#include "client/cli/line/options.h"

namespace wl {

// Returns the options, or the exit code with which to end: --help and --version have been printed to stdout, errors to
// stderr.
std::variant<Options, int> parse_options(int argc, const char* const* argv);

}  // namespace wl
