// GPU kernels that are broken one at a time, as a compiler bug would break them: a missing barrier, a wrong bound, a
// missing mask, a shuffle over the wrong distance.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl::testing {

struct Mutant {
  int kernel = 0;
  std::string kind, breakage, line;
  Source source;
};

// Adds what becomes of a kernel when each instruction to which a breakage applies is broken, wherever it is printed;
// shuffles, barriers, waits and commits one at a time. `number` is the kernel's, for the caller.
void break_kernel(int number, const Source& source, std::vector<Mutant>& mutants);

}  // namespace wl::testing
