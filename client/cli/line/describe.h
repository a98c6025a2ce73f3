// What shells and people learn of the command line, made of its description: completion and manual pages.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace wl {

// Returns a script that completes commands, options, the values of options that have few, and files. `shell`: bash, zsh
// or fish.
std::string completion_for(const CLI::App& app, const std::string& shell);

// Returns a manual page of section 1 in the man macros: of the program, or of the command that is named. Fails if there
// is no such command.
absl::StatusOr<std::string> manual_page(const CLI::App& app, const std::string& command);

}  // namespace wl
