// Hand-written kernels and batches for the worker's tests.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "worker/measure.h"

namespace wl::testing {

// Makes a batch for c = a + b over `elements` floats, of which every `stride`-th element is checked.
Batch add_batch(int64_t elements, int64_t stride = 7);

// Makes a candidate of add_batch with this kernel body. `i` is the block's number (64 elements each), and `a`, `b`, `c`
// are the arguments. In the text, $ stands for a prefix that is unique to the candidate.
Candidate candidate(int64_t trial, const std::string& body, const std::string& before = "");

// The body of a correct kernel, which adds its inputs.
extern const char* const kAdd;

// Returns options with the path of the runner, a new folder for the test, and a sandbox if this machine supports one.
MeasureOptions options();

}  // namespace wl::testing
