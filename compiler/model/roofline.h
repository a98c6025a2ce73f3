// The analytic bound: what a group cannot do faster than on this machine. Used to order work (where is most time to
// win) and to say in reports how far a kernel is from the limit; never to reject a candidate.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Roofline {
  double memory_ns = 0;   // compulsory bytes at the bandwidth of the memory or cache that holds them
  double compute_ns = 0;  // issue slots of all elements at the peak rate
  double ns() const { return memory_ns > compute_ns ? memory_ns : compute_ns; }
};

// Of one run of the group with all threads. Rates are the target row's nominal ones.
Roofline roofline(const Graph& group, const Machine& machine);

}  // namespace wl
