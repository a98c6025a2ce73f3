// Analytic bounds of a group's time. The roofline, by nominal rates, decides which group gets the next round of a
// search, where most time can be gained; it never rejects a candidate. The floor, by peaks, is below what any kernel of
// the group can take on any machine of the row: a time below it was not measured.
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

// Multiply-adds of a product of the graph for each of f32, on this machine, by the fastest instruction that it has.
double multiply_adds(const Graph& graph, const Node& product, const Machine& machine);

// ns of one run of the group on all threads: its compulsory bytes at the peak of L1 where that holds them and of what
// is behind it otherwise, the multiply-adds of its contractions, and a launch. Counts only what every correct kernel
// must do. 0: no time of the row is judged.
double floor_ns(const Graph& group, const Machine& machine);

}  // namespace wl
