// The judgement of GPU code before any GPU time: what certainly does not pay is not run, and what looks best is run
// first, so that the rest is soon seen to be hopeless. Pure.
#pragma once

#include <string>

#include "compiler/base/records.h"

namespace wl {

// Share of a unit's threads that are resident when as many blocks of `threads` run on it as fit; 0: not even one does.
double occupancy_of(const CodeFacts& code, const CodeLimits& limits, int threads);

// "" or why a kernel is not to be run: it does not fit, spills, became a compare-and-swap loop, or moves less at a time
// than its text promises (Source::load_bytes, store_bytes). Facts that are not known (0) are not held against it.
std::string reject_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source);

// Larger is more promising: wide accesses, then bytes that can be in flight (occupancy up to where it stops to matter).
double promise_of(const CodeFacts& code);

}  // namespace wl
