// Judges GPU code before it takes any time of a GPU: kernels that are certainly slow are not run, and the most
// promising kernels run first, so that slower ones are given up soon. These functions are pure.
#pragma once

#include <string>

#include "compiler/base/records.h"

namespace wl {

// Returns the occupancy: the fraction of the threads of a multiprocessor (SM or CU) that are resident if as many blocks
// of `threads` threads run on it as fit; 0: no block fits.
double occupancy_of(const CodeFacts& code, const CodeLimits& limits, int threads);

// Returns "", or why a kernel cannot run: not even one block of it fits a multiprocessor.
std::string unfit_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source);

// Returns "", or why a kernel should not run: a block does not fit, or the kernel is certainly slow, because it spills
// more than kMostSpill bytes, contains a compare-and-swap loop, or has narrower accesses than its text promises
// (Source::load_bytes, store_bytes). Unknown facts (0) never reject a kernel. The reason may be wrong, since compilers
// leave out loads of values that are not needed; so at least one kernel of every group should be run regardless.
std::string reject_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source);

// Returns a number that is larger for more promising code. It depends first on the access widths, then on the bytes
// that can be in flight (by occupancy, up to the point where more does not help); spills count against a kernel.
double promise_of(const CodeFacts& code);

}  // namespace wl
