// `warploom export`: converts a bundle to C++, CUDA or HIP sources that build without anything of Warploom.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cli/check.h"
#include "client/program/executor.h"

namespace wl {

// A file of the export: its path below the folder, and its text or bytes.
using ExportedFiles = std::vector<std::pair<std::string, std::string>>;

struct ExportOptions {
  std::string name;                // name of the library, a C identifier; its files and functions begin with this name
  std::vector<std::string> flags;  // options of the kernels' compiler (Local::flags_of)
};

// Returns OK if the program may be exported. Unimplemented: the program has a kernel that calls a library.
absl::Status may_be_exported(const Program& program);

// Returns the files for a program whose inputs and weights `executor` has in memory: sources, weights, and for the
// self-test those inputs with the `expected` elements of every output.
absl::StatusOr<ExportedFiles> exported_files(const Executor& executor, const std::vector<ExpectedOutput>& expected,
                                             const ExportOptions& options);

// Converts the last part of a path to a C identifier: "build/bert-base" gives "bert_base". An identifier that an export
// cannot use, such as a keyword, gets the prefix "model_".
std::string identifier_of(const std::string& path);

}  // namespace wl
