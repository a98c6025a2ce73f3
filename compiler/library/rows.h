// The functions of each kernel library. To add a library, declare its functions here and add its row to library.cpp.
#pragma once

#include "compiler/library/library.h"

namespace wl {

// The functions of oneDNN 2 for CPUs, which are defined in onednn.cpp.
std::optional<LibraryGroup> onednn_group(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Source> onednn_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                     const Schedule& schedule, const Machine& machine);

// The functions of cuBLASLt and hipBLASLt for GPUs, which are defined in matmul.cpp.
std::optional<LibraryGroup> matmul_group(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Source> matmul_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                     const Schedule& schedule, const Machine& machine);

}  // namespace wl
