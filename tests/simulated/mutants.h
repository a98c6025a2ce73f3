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

// Adds a mutant of a kernel for each breakage and each instruction to which the breakage applies. A mutant breaks all
// lines that the instruction prints; if the instruction is a shuffle, barrier, wait, arrival or commit, it breaks only
// one of these lines. The member `kernel` of the mutants is set to `number`.
void break_kernel(int number, const Source& source, std::vector<Mutant>& mutants);

}  // namespace wl::testing
