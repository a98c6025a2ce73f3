// Hand-written kernels and batches for the worker's tests.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "worker/measure.h"

namespace wl::testing {

// c = a + b over `elements` floats, checked at every `stride`th element.
Batch add_batch(int64_t elements, int64_t stride = 7);

// Makes a candidate of add_batch whose kernel has this body. `i` is the block (of 64 elements), `a`, `b`, `c` are the
// arguments. In the text, $ stands for a prefix that is unique to the candidate.
Candidate candidate(int64_t trial, const std::string& body, const std::string& before = "");

// The body of a correct kernel, which adds its inputs.
extern const char* const kAdd;

// Returns options with the path of the runner, a fresh folder for the test, and a sandbox where this machine makes one.
MeasureOptions options();

}  // namespace wl::testing
