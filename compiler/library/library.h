// Kernels that call a library, as candidates beside those that are generated: of a group that is a product with an
// epilogue, on a machine whose job allows the library. A plan of one begins with "plan 2 target=cpu:avx512
// class=onednn". Each library is a row of library.cpp.
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
// nullopt: the machine has no library, or the library has nothing for the group.
std::optional<LibraryGroup> library_group(const Graph& group, const Domain& domain, const Machine& machine);

// The kernel that calls the library (see Source::library). On CPUs it is C++ with the entry of every kernel there, and
// one more function, ENTRY_prepare; on GPUs the text of a MatmulCall (compiler/base/matmul.h).
absl::StatusOr<Source> library_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                      const Schedule& schedule, const Machine& machine);

}  // namespace wl
