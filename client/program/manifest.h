// The manifest of a bundle, with its writer and its only reader. The reader guarantees that names are no paths and have
// no control characters, and that the executor may rely on the numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/program/program.h"
#include "compiler/base/status.h"

namespace wl {

// Format 2 of bundles added folded weights, format 3 kernels of several passes, format 4 kernels that call a library,
// format 5 the text of launch_text() at the end of each kernel's source.
inline constexpr int kBundleFormat = 5, kFirstWithLaunches = 5;

struct BundleFile {
  std::string path;  // path of the file, relative to the bundle's folder
  std::string sha256;
  int64_t bytes = 0;
};
struct Manifest {
  int64_t format = kBundleFormat;
  Program program;  // the program that the manifest describes; graph_text and the kernels' object_path are not set
  std::vector<BundleFile> files;
};

std::string manifest_text(const Program& program, const std::vector<BundleFile>& files);

// Reads a manifest. InvalidArgument: the manifest has a newer format, or a name or number that is not allowed.
// DataLoss: its bytes have changed since it was written.
absl::StatusOr<Manifest> parse_manifest(const std::string& text);
// Reads the manifest of the bundle in a folder. Errors are those of parse_manifest(), and InvalidArgument if the
// folder has no manifest.
absl::StatusOr<Manifest> read_manifest(const std::string& folder);

// Names of a kernel's files without their folder: ENTRY.cpp and ENTRY.so for CPUs, .cu and .cubin, .hip and .hsaco for
// GPUs.
std::string source_file(const Source& source);
std::string object_file(const Source& source);
// Paths of a kernel's files, relative to the bundle's folder.
std::string source_path(const ProgramKernel& kernel);
std::string object_path(const ProgramKernel& kernel);
std::string graph_path(const ProgramKernel& kernel);

// Returns the DataLoss error for a file of a bundle whose bytes have changed; `how` says in which way.
absl::Status bundle_changed(std::string_view file, std::string_view how);

}  // namespace wl
