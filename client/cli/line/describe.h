// Completion scripts for shells and manual pages, made from the description of the command line.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace wl {

// Returns a script that completes commands, options, files, and the values of options that allow only a few. `shell`:
// bash, zsh or fish.
std::string completion_for(const CLI::App& app, const std::string& shell);

// Returns a manual page of section 1 in man macros, of a command or, if `command` is empty, of the program.
// InvalidArgument: there is no such command.
absl::StatusOr<std::string> manual_page(const CLI::App& app, const std::string& command);

}  // namespace wl
