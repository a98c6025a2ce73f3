// Judges GPU code before any GPU time is spent: kernels that certainly do not pay are not run, and the most promising
// are run first, so that slower ones are soon given up. Pure.
#pragma once

#include <string>

#include "compiler/base/records.h"

namespace wl {

// Returns the share of a unit's threads that are resident when as many blocks of `threads` run on it as fit; 0 if no
// block fits.
double occupancy_of(const CodeFacts& code, const CodeLimits& limits, int threads);

// Returns "" or why a kernel cannot be run: no block of it fits a unit.
std::string unfit_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source);

// Returns "" or why a kernel must not be run: it does not fit, or certainly does not pay, since it spills, contains a
// compare-and-swap loop, or its accesses are narrower than its text promises (Source::load_bytes, store_bytes). Unknown
// facts (0) never reject a kernel. Compilers leave out loads whose values are not needed, so that this can be wrong: at
// least one kernel of every group should be run all the same.
std::string reject_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source);

// Larger is more promising: compares widths of accesses, then bytes that can be in flight (occupancy, up to the point
// where more does not help).
double promise_of(const CodeFacts& code);

}  // namespace wl
