// Finds the exponentials that may be less exact than others, because every value computed from them is rounded to f16,
// bf16 or a narrower float before it is stored (docs/numerics.md).
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// Returns for every node whether it is an exp of f32 or a narrower float that may be less exact. The value of an exp of
// f32 must reach outputs and other operations only through casts to narrower floats. Before the cast there may only be
// products, quotients, sums over an axis, contractions, extremes, selections and views, which do not make a relative
// error larger.
std::vector<bool> rounded_exps(const Graph& graph);

// Whether the graph has an exp and rounded_exps() is true for every exp in it.
bool rounds_all_exps(const Graph& graph);

// Returns the absolute error that an exp of rounded_exps() may have in addition to that of any exp; `value` is its
// result for `x`. Its argument may be multiplied by log2(e) and rounded once, and results below the smallest normal
// number of f32 may be 0.
double error_of_rounded_exp(double x, double value);

}  // namespace wl
