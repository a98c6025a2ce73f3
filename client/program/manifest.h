// The manifest of a bundle, and the only reader of one: what it returns has names that are no paths and have no control
// characters, and numbers that the executor may rely on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/program/program.h"
#include "compiler/base/status.h"

namespace wl {

// Format 2 of bundles added folded weights, format 3 kernels of several passes, format 4 kernels that call a library,
// format 5 what launch_text() says at the end of each kernel's source.
inline constexpr int kBundleFormat = 5, kFirstWithLaunches = 5;

struct BundleFile {
  std::string path;  // path relative to the bundle's folder
  std::string sha256;
  int64_t bytes = 0;
};
struct Manifest {
  int64_t format = kBundleFormat;
  Program program;  // without graph_text and object_path
  std::vector<BundleFile> files;
};

std::string manifest_text(const Program& program, const std::vector<BundleFile>& files);

// InvalidArgument: a name or a number that no bundle has, or a newer format. DataLoss: the text has changed.
absl::StatusOr<Manifest> parse_manifest(const std::string& text);

// Paths of a kernel's files, relative to the bundle's folder.
std::string source_path(const ProgramKernel& kernel);
std::string object_path(const ProgramKernel& kernel);
std::string graph_path(const ProgramKernel& kernel);

// DataLoss: what to say of a file whose bytes have changed.
absl::Status bundle_changed(std::string_view file, std::string_view how);

}  // namespace wl
