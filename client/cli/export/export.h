// `warploom export`: a bundle as sources of C++, CUDA or HIP that build with nothing of ours.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cli/check.h"
#include "client/program/executor.h"

namespace wl {

// A file of the export: its path below the folder, and its text or bytes.
using ExportedFiles = std::vector<std::pair<std::string, std::string>>;

// How the kernels of a target are compiled (Local::flags_of).
struct ExportOptions {
  std::string name;                // an identifier: of the files and of every function
  std::vector<std::string> flags;  // of the compiler
};

// Unimplemented: the program has a kernel that calls a library.
absl::Status may_be_exported(const Program& program);

// Returns the files for a program whose inputs and weights `executor` has in memory: sources, weights, and as the
// self-test those inputs and what is expected of them, for every output.
absl::StatusOr<ExportedFiles> exported_files(const Executor& executor, const std::vector<ExpectedOutput>& expected,
                                             const ExportOptions& options);

// Returns a C identifier that is like the last part of a path: "build/bert-base" gives "bert_base".
std::string identifier_of(const std::string& path);

}  // namespace wl
