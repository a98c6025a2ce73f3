// Generated inputs. Every element of every generated tensor is a pure function of (seed, stream, index), so the
// coordinator's oracle, a runner on another machine and a test all compute the same numbers without sending them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"

namespace wl {

// How an input is generated. Floats are approximately normal (the sum of four 16-bit uniforms: exact, portable, bounded
// by 3.5 standard deviations), rounded to the dtype. Integers are uniform in [low, high), b1 is uniform in {0, 1}. Of
// integers of 16 bits or more whose range is that of their dtype, half are instead what arithmetic goes wrong with: the
// least and largest numbers, small ones, and the neighbours of powers of two.
struct Fill {
  double mean = 0;
  double stddev = 1;
  int64_t low = 0;
  int64_t high = 2;
  std::vector<double> literal = {};  // if not empty, the values themselves in row-major order
  bool operator==(const Fill&) const = default;
};

// The range of a dtype of integers, as far as a Fill can say it: the largest number of 64 bits is left out.
struct WholeRange {
  int64_t low;
  int64_t high;
};
WholeRange whole_fill(DType dtype);

// The value of element `index` of the tensor generated as `stream` from `seed`, already rounded to `dtype`.
double fill_value(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t index);

// Writes elements [begin, end) of the tensor to `out`, which points at element `begin`, in the dtype's memory form. The
// bits are those of fill_value. Takes about 1 ns an element for f32, 2 for f16 and bf16.
void fill_range(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t begin, uint64_t end, void* out);

// Converts between memory form and double, for any dtype. Stores round to nearest even; integers and eight-bit floats
// saturate.
double load_element(DType dtype, const void* data, uint64_t index);
void store_element(DType dtype, void* data, uint64_t index, double value);

}  // namespace wl
