// Inputs without files: every element of every generated tensor is a pure function of (seed, stream, index), so the
// coordinator's oracle, a runner on another machine and a test all see the same numbers without sending them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"

namespace wl {

// How an input is generated. Floats: an approximately normal number (sum of four 16-bit uniforms: exact, portable,
// bounded by 3.5 standard deviations), rounded to the dtype. Integers: uniform in [low, high). b1: uniform in {0, 1}.
struct Fill {
  double mean = 0;
  double stddev = 1;
  int64_t low = 0;
  int64_t high = 2;
  std::vector<double> literal = {};  // if not empty: the values themselves, row-major
  bool operator==(const Fill&) const = default;
};

// The value of element `index` of the tensor generated as `stream` from `seed`, already rounded to `dtype`.
double fill_value(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t index);

// Writes elements [begin, end) of the tensor to `out` (which points at element `begin`) in the dtype's memory form.
// Agrees bit for bit with fill_value. Fast: about 1 ns an element for f32.
void fill_range(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t begin, uint64_t end, void* out);

// Memory form <-> double, for any dtype. Rounds to nearest even; integers and floats of eight
// bits saturate.
double load_element(DType dtype, const void* data, uint64_t index);
void store_element(DType dtype, void* data, uint64_t index, double value);

}  // namespace wl
