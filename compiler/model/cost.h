// The expected time of a group's kernel before anything is measured: launch + max(traffic, arithmetic) / fill, where
// fill is the busy share of the machine. Covers are compared by it, so it models what a cover changes: values that are
// written and read again, passes over a row, repeated work, and loops that are too short for the machine.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/model/rates.h"

namespace wl {

struct Cost {
  double micros = 0;
  double bound = 0;   // us; lower bound: the launch + max(every value moved once, every element computed once)
  double busy = 0;    // us that the kernel's work would take if all parts of the machine had an equal share of it
  int64_t bytes = 0;  // bytes that the kernel reads and writes
};

// Returns the cost of one launch. `domain` is the group's domain, from analyze_group(). micros >= bound > 0.
Cost cost_of(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates);

}  // namespace wl
