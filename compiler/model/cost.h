// The expected time of a group's kernel before anything is measured: launch + max(traffic, arithmetic) / fill, where
// fill is the busy share of the machine. Covers are compared by it, so it models what a cover changes: values that are
// written and read again, passes over a row, repeated work, and loops that are too short for the machine.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/model/rates.h"

namespace wl {

struct Cost {
  double micros = 0;
  double bound = 0;   // lower bound of the time: the launch, every value moved once, every element computed once
  double busy = 0;    // us of the kernel, without the share of the machine that its blocks leave idle for other kernels
  int64_t bytes = 0;  // bytes read and written
};

// Returns the cost of one launch. `domain` is the group's domain, by analyze_group(). micros >= bound > 0.
Cost cost_of(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates);

}  // namespace wl
