// Inside plan/: a Domain while it is being made, with what classification needs to know about each node.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

struct Draft {
  Domain domain;  // atoms, varies, operands, stores; for a contraction also contract, batch, m, n
  std::vector<std::vector<AtomId>> reduced_by;  // indexed by NodeId: atoms that the reduce or contraction sums over
  std::vector<NodeId> computed;                 // ascending
};

// Atoms that always move together become one; then the loop class, the vector atom and the orders of atoms.
absl::StatusOr<Domain> classify(const Graph& group, Draft draft);
Domain nothing_to_compute(const Graph& group);  // of a group whose outputs have no elements

}  // namespace wl
