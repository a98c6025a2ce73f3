// A Program on disk: a folder that runs anywhere without a compiler.
//   manifest.json     buffers, kernels, calls and the SHA-256 of every other file; its own digest is its last key
//   graph.txt         canonical text of the graph
//   kernels/ENTRY.graph, kernels/ENTRY.cpp, kernels/ENTRY.so    what it computes, its source, its object
//                     (.cu and .cubin, .hip and .hsaco where it is a GPU's)
//   report.json       what was stored about each group
// Equal programs give equal bytes. A changed byte in any of these files is found on loading. The digests protect
// against damage, not against malice: running a bundle runs its code.
#pragma once

#include <string>

#include "client/program/program.h"

namespace wl {

// 2: weights may be folded; format 1 has none. 3: kernels may have several passes.
inline constexpr int kBundleFormat = 3;

// Whether write_bundle() would refuse `folder`; to ask before a long search.
absl::Status may_become_bundle(const std::string& folder);

// Writes beside `folder` first and renames, so a reader sees the old bundle or the new one. Replaces a bundle; refuses
// (InvalidArgument) to replace anything else that is not an empty folder.
absl::Status write_bundle(const std::string& folder, const Program& program, const std::string& report);

// Verifies every file and every number in the manifest. Errors: InvalidArgument when the folder is no bundle or of a
// newer format; DataLoss naming the file whose bytes have changed.
absl::StatusOr<Program> load_bundle(const std::string& folder);

// The manifest alone: what fuzzers and load_bundle() share. The result's graph_text and object_path are empty.
struct BundleFile {
  std::string path;  // relative to the folder
  std::string sha256;
  int64_t bytes = 0;
};
struct Manifest {
  Program program;
  std::vector<BundleFile> files;
};
absl::StatusOr<Manifest> parse_manifest(const std::string& text);

}  // namespace wl
