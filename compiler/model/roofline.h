// The analytic bound: a time that no kernel of a group can beat on this machine. It decides which group gets the next
// round of a search, where most time can be gained; it never rejects a candidate.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Roofline {
  double memory_ns = 0;   // compulsory bytes at the bandwidth of the memory or cache that holds them
  double compute_ns = 0;  // issue slots of all elements at the nominal rate
  double ns() const { return memory_ns > compute_ns ? memory_ns : compute_ns; }
};

// The bound of one run of the group on all threads, by the nominal rates of the target's row.
Roofline roofline(const Graph& group, const Machine& machine);

}  // namespace wl
