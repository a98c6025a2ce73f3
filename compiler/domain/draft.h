// Internals of domain/: a Domain that is not finished, with facts about each node that classify() needs.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

struct Draft {
  // Of the domain's fields, these are set: atoms, varies, operands, stores and, if there is a contraction, contract,
  // batch, m and n.
  Domain domain;
  std::vector<std::vector<AtomId>> reduced_by;  // for each node, by NodeId: the atoms that it reduces or sums over
  std::vector<NodeId> computed;                 // the nodes that the group computes, ascending
};

// Finishes a draft: merges atoms that are always traversed together, and finds the loop class, the vector atom and the
// order of the atoms. The error is InvalidArgument if the group is not one loop nest.
absl::StatusOr<Domain> classify(const Graph& group, Draft draft);
Domain nothing_to_compute(const Graph& group);  // returns the domain of a group whose outputs have no elements

}  // namespace wl
