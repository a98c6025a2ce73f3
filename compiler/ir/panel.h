// Contractions of the oracle. The demanded rows of both operands are gathered into contiguous panels, which are
// multiplied a register block at a time. Lane sums are taken in the same order on every machine, so equal arguments
// give equal bytes. Internal to the oracle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/evaluator.h"

namespace wl {

// Factors of a propagated error: the sum over terms of f(|a|) f(eb) + f(ea) f(|b| + eb), where f(x) = x for the worst
// case and x * x for the spread. Both are divided by their largest, so that squares stay in the range of f32.
struct ErrorPanel {
  std::vector<float> factor, error;
  double factor_scale = 1, scale = 1;
  bool exact = true;
};

// Gathered rows of one operand of a contraction.
struct Panel {
  // Gathers rows that start at elements `bases` and follow `steps`, filled up with zeros to `padded` terms. `second`:
  // this is operand b, whose factors include its own error. `literal_worst`: as in SumErrors; `worst` stays empty
  // otherwise. `inexact`: a relative error that factors have beside their own.
  void gather(const Column& from, const ElementSet& positions, std::span<const int64_t> bases,
              const std::vector<int64_t>& steps, int64_t padded, bool second, bool literal_worst, double inexact);
  std::vector<double> value;
  std::vector<float> magnitude;
  double scale = 1;
  bool finite = true;  // whether all errors of the panel are finite
  ErrorPanel worst, spread;
};

// The number of terms in a row of a panel is a multiple of this.
inline constexpr int64_t kPanelAlignment = 8;

// Dot products of rows of two panels.
class PanelProduct {
 public:
  // `inexact`: as of the panels.
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
  double flushed_;  // what flushing denormals can do to a sum of factors up to 1
  int64_t padded_;
  double inexact_;
  void (*multiply_)(const double*, const double*, int64_t, int, int, double[2][4]);
  void (*multiply_errors_)(const float*, const float*, int64_t, int, int, float[2][4]);
};

}  // namespace wl
