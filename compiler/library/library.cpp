#include "compiler/library/library.h"

#include "compiler/library/rows.h"

namespace wl {
namespace {

struct LibraryRow {
  std::string_view name;  // the library's name in compiler/base/libraries.h
  decltype(&onednn_group) group;
  decltype(&onednn_source) source;
};
constexpr LibraryRow kLibraryRows[] = {
    {"onednn", onednn_group, onednn_source},
    {"cublaslt", matmul_group, matmul_source},
    {"hipblaslt", matmul_group, matmul_source},
};

// Returns the row of the library that the machine provides for its target; null if it provides none.
const LibraryRow* row_of(const Machine& machine) {
  if (machine.library == nullptr || machine.library->family != machine.target->family) return nullptr;
  for (const LibraryRow& row : kLibraryRows)
    if (row.name == machine.library->name) return &row;
  return nullptr;
}

}  // namespace

std::optional<LibraryGroup> library_group(const Graph& group, const Domain& domain, const Machine& machine) {
  const LibraryRow* const row = row_of(machine);
  return row == nullptr ? std::nullopt : row->group(group, domain, machine);
}

absl::StatusOr<Source> library_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                      const Schedule& schedule, const Machine& machine) {
  const LibraryRow* const row = row_of(machine);
  if (row == nullptr) return invalid("the machine has no library for its target");
  return row->source(group, domain, library, schedule, machine);
}

}  // namespace wl
