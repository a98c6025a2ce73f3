// Contractions of the oracle (eval.h). Each element of the result is a sum; a row is the elements of one operand that
// one such sum runs over. The rows that are needed of each operand are gathered into a contiguous panel, and two panels
// are multiplied in blocks of 2 x 4 elements of the result. Vector lanes are added up in the same order on every
// machine, so equal arguments give equal bytes. Only the oracle uses this header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/evaluator.h"

namespace wl {

// One operand's part in the error of dot products. With the errors ea and eb of the operands a and b, the error of a
// dot product is the sum of f(|a|) f(eb) + f(ea) f(|b| + eb) over its terms, where f(x) = x for the worst case and f(x)
// = x * x for the spread. `factor` has f(|a|) for operand a or f(|b| + eb) for operand b, and `error` has f(ea) or
// f(eb). The entries of each list are divided by its largest one, so that squares stay in the range of f32;
// `factor_scale` and `scale` undo the division.
struct ErrorPanel {
  std::vector<float> factor, error;
  double factor_scale = 1, scale = 1;
  bool exact = true;
};

// The rows of one operand of a contraction, copied to be contiguous.
struct Panel {
  // Copies one row for each entry of `bases`, the index of the row's first element; `steps` are the offsets from that
  // element to all elements of the row. Each row is filled with zeros up to `padded` terms. `positions` gives the index
  // in `from` of an element. `second`: whether this is operand b, whose factors include its own error. `literal_worst`:
  // as in SumErrors; if not set, `worst` is not used. `inexact`: a relative error that every element has in addition to
  // its own.
  void gather(const Column& from, const ElementSet& positions, std::span<const int64_t> bases,
              const std::vector<int64_t>& steps, int64_t padded, bool second, bool literal_worst, double inexact);
  std::vector<double> value;
  std::vector<float> magnitude;
  double scale = 1;
  bool finite = true;  // whether all errors of the panel are finite
  ErrorPanel worst, spread;
};

// The number of terms in a row of a panel, including padding, is a multiple of kPanelAlignment.
inline constexpr int64_t kPanelAlignment = 8;

// Computes dot products of rows of two panels, with their errors.
class PanelProduct {
 public:
  // `dtype` is that of the results, `terms` the length of a row without its padding. `padded` and `inexact` are as in
  // gather().
  PanelProduct(DType dtype, int64_t terms, int64_t padded, double inexact);
  bool literal_worst() const { return errors_.literal_worst; }
  // Computes `rows` (1 or 2) x `columns` (1 to 4) results, starting at row `i` of a and row `j` of b.
  void operator()(const Panel& a, int64_t i, const Panel& b, int64_t j, int rows, int columns,
                  Estimate out[2][4]) const;

 private:
  using Doubles = double[2][4];
  void add_errors(const ErrorPanel& a, int64_t i, const ErrorPanel& b, int64_t j, int rows, int columns,
                  Doubles& total) const;
  DType dtype_;
  SumErrors errors_;
  // The error that a dot product of factors of magnitude at most 1 has if kernels may treat denormals as zeros;
  // otherwise 0.
  double flushed_;
  int64_t padded_;
  double inexact_;
  void (*multiply_)(const double*, const double*, int64_t, int, int, double[2][4]);
  void (*multiply_errors_)(const float*, const float*, int64_t, int, int, float[2][4]);
};

}  // namespace wl
