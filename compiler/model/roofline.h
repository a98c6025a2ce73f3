// Analytic bounds of a group's time. The roofline, by nominal rates, decides which group gets the next round of a
// search: the one where most time can be gained. It never rejects a candidate. The floor, by peak rates, is below what
// any kernel of the group can take on any machine of the target's row: a time below it cannot have been measured.
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

// How many multiply-adds of `product`, a contraction of the graph, this machine does in the time of one of f32, by the
// fastest instruction that it has.
double multiply_adds(const Graph& graph, const Node& product, const Machine& machine);

// A lower bound, in ns, of one run of the group on all threads. It is the longest of three times: to move the
// compulsory bytes, at the peak rate of L1 where that holds them and of what is behind it otherwise; to do the
// contractions' multiply-adds; and to launch. Only what every correct kernel must do counts. 0: the target's row has no
// peaks, so no time is judged.
double floor_ns(const Graph& group, const Machine& machine);

}  // namespace wl
