// The expected time of a group's kernel before anything is measured: launch + max(traffic, arithmetic) / fill, where
// fill is the share of the machine that is busy. It is used to choose between covers, so it models what a cover
// changes: values that are written and read again, passes over a row, repeated work, and loops that are too short for
// the machine.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/model/rates.h"

namespace wl {

struct Cost {
  double micros = 0;
  double bound = 0;   // a lower bound: the launch, every value moved once, every element computed once
  double busy = 0;    // us of the whole machine for its work, if other kernels use what its blocks leave idle
  int64_t bytes = 0;  // bytes read and written
};

// The cost of one run. `domain` is the group's, from analyze_group(). micros >= bound > 0.
Cost cost_of(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates);

}  // namespace wl
