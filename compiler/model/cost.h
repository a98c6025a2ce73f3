// What a group's kernel is expected to take, before anything was measured: launch + max(traffic, arithmetic) / fill. It
// decides between covers, so what matters is what a cover changes: values that are written and read again, walks over a
// row, work that is repeated, loops that are too short for the machine.
#pragma once

#include "compiler/model/rates.h"
#include "compiler/plan/domain.h"

namespace wl {

struct Cost {
  double micros = 0;
  double bound = 0;   // no kernel of the group takes less: launch, every value moved once, every element computed once
  double busy = 0;    // us of the machine that its work takes, whatever its own blocks leave idle filled by others
  int64_t bytes = 0;  // read and written
};

// Of one run; `domain` is analyze()'s of the group. micros >= bound > 0.
Cost cost_of(const Graph& group, const Domain& domain, const Machine& machine, const Rates& rates);

}  // namespace wl
