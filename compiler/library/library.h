// Kernels that call a library. They compete with the generated candidates if a group is a product with an epilogue and
// the job allows the library. A plan of such a kernel begins, for example, with "plan 2 target=cpu:avx512
// class=onednn". Each library is a row of the table in library.cpp.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"
#include "compiler/library/product.h"
#include "compiler/schedule/space.h"

namespace wl {

struct LibraryGroup {
  Product product;
  Space space;
};
// Returns the group in the form that the machine's library takes, and the space of the group's plans for that library.
// Returns nullopt if the machine has no library, or the library has no kernel for the group.
std::optional<LibraryGroup> library_group(const Graph& group, const Domain& domain, const Machine& machine);

// Returns the source of the kernel that calls the library (see Source::library). On CPUs it is C++ with the entry that
// every CPU kernel has, and one more function, ENTRY_prepare; on GPUs it is the text of a MatmulCall
// (compiler/base/matmul.h). The error is InvalidArgument if the library has no kernel for the group.
absl::StatusOr<Source> library_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                      const Schedule& schedule, const Machine& machine);

}  // namespace wl
