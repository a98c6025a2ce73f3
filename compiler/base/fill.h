// Generated inputs. Every element of every generated tensor is a pure function of (seed, stream, index). So the
// coordinator's oracle (its reference evaluation in double precision), a runner on another machine and a test all
// compute the same numbers, and no numbers are sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"

namespace wl {

// How an input is generated. Floats are approximately normal (the sum of four 16-bit uniforms: exact, portable, bounded
// by 3.5 standard deviations), rounded to the dtype. Integers are uniform in [low, high), and b1 is uniform in {0, 1}.
// If [low, high) is the whole range of an integer dtype of 16 bits or more, half of the elements are instead numbers
// with which arithmetic often goes wrong: the least and largest ones, small ones, and the neighbours of powers of two.
struct Fill {
  double mean = 0;
  double stddev = 1;
  int64_t low = 0;
  int64_t high = 2;
  std::vector<double> literal = {};  // the values of the input in row-major order; empty: they are drawn at random
  bool operator==(const Fill&) const = default;
};

// The range [low, high) of an integer dtype, as far as the 64-bit bounds of a Fill can express it: for i64 and u64,
// numbers from 2^63 - 1 on are left out.
struct WholeRange {
  int64_t low;
  int64_t high;
};
WholeRange whole_fill(DType dtype);

// Returns element `index` of the tensor that is drawn from random stream `stream` of `seed`, already rounded to
// `dtype`.
double fill_value(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t index);

// Writes elements [begin, end) of the tensor, in the dtype's memory form, to `out`, which points at element `begin`.
// The bits are those of fill_value(). This takes about 1 ns an element for f32, and 2 ns for f16 and bf16.
void fill_range(const Fill& fill, DType dtype, uint64_t seed, uint64_t stream, uint64_t begin, uint64_t end, void* out);

// These functions convert element `index` of `data` from or to the memory form of a dtype. store_element() rounds to
// nearest even; integers and eight-bit floats saturate.
double load_element(DType dtype, const void* data, uint64_t index);
void store_element(DType dtype, void* data, uint64_t index, double value);

}  // namespace wl
