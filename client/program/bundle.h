// A Program on disk: a folder that any machine with the right CPU or GPU can run without a compiler.
//
//   manifest.json     buffers, kernels, calls and the SHA-256 of every other file; the last key is this file's digest
//   graph.txt         canonical text of the graph
//   kernels/ENTRY.graph, kernels/ENTRY.cpp, kernels/ENTRY.so    a kernel's group, its source, its object
//                     (.cu and .cubin, .hip and .hsaco for GPUs)
//   report.json       the stored facts about each group
//
// Equal programs give equal bytes. Loading detects a changed byte in any of these files. The digests protect against
// damage, not against malice: running a bundle runs its code.
#pragma once

#include <string>

#include "client/program/program.h"

namespace wl {

// Returns the error with which write_bundle() would refuse `folder`, or OK. A caller checks this before a long search.
absl::Status may_become_bundle(const std::string& folder);

// Writes to a folder beside `folder` and renames it, so that a reader sees either the old bundle or the new one.
// Replaces a bundle; refuses to replace anything else that is not an empty folder (InvalidArgument).
absl::Status write_bundle(const std::string& folder, const Program& program, const std::string& report);

// Reads a bundle and verifies every file and every number in the manifest. InvalidArgument: the folder is no bundle,
// has a newer format, or its launches contradict its kernels (sound.h). DataLoss names a file whose bytes have changed.
absl::StatusOr<Program> load_bundle(const std::string& folder);

// Whether two bundles, which were loaded, have the same kernels and launches, so that only their reports may differ.
// False if a manifest cannot be read, and for folders of several sizes.
bool same_kernels(const std::string& folder, const std::string& other);

}  // namespace wl
