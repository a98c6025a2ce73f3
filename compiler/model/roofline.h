// Analytic bounds of a group's time. The roofline, by nominal rates, decides which group of a search gets the next
// round: the one where most time can be gained. It never rejects a candidate. The floor, by peak rates, is shorter than
// the time of any kernel of the group on any machine of the target (target.h), so a shorter time cannot have been
// measured.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Roofline {
  // Bytes that every kernel must move, divided by the bandwidth of the cache or memory that holds them.
  double memory_ns = 0;
  double compute_ns = 0;  // issue slots of all elements, divided by the nominal rate
  double ns() const { return memory_ns > compute_ns ? memory_ns : compute_ns; }
};

// Returns the bound of one launch of the group on all threads, by the target's nominal rates.
Roofline roofline(const Graph& group, const Machine& machine);

// Returns how many multiply-adds of `product`, a contraction of the graph, the machine's fastest instruction does in
// the time of one multiply-add of f32.
double multiply_adds(const Graph& graph, const Node& product, const Machine& machine);

// Returns a lower bound, in ns, of one launch of the group on all threads. It is the longest of three times: to move
// the bytes that every kernel must move, at the peak rate of L1 if they fit there and otherwise of the memory behind
// L1; to do the contractions' multiply-adds; and to launch. 0: the target has no peak rates, so no time is rejected.
double floor_ns(const Graph& group, const Machine& machine);

}  // namespace wl
