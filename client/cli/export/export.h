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
  std::string name;                // a C identifier: the name of the library, with which its files and functions begin
  std::vector<std::string> flags;  // options of the kernels' compiler (Local::flags_of)
};

// OK if the program may be exported. Unimplemented: it has a kernel that calls a library.
absl::Status may_be_exported(const Program& program);

// Returns the files for a program whose inputs and weights `executor` has in memory: sources, weights, and for the
// self-test those inputs with the `expected` elements of every output.
absl::StatusOr<ExportedFiles> exported_files(const Executor& executor, const std::vector<ExpectedOutput>& expected,
                                             const ExportOptions& options);

// Converts the last part of a path to a C identifier: "build/bert-base" gives "bert_base". One that the export could
// not use, such as a keyword, is prefixed with "model_".
std::string identifier_of(const std::string& path);

}  // namespace wl
