// Finds the exponentials that may be less exact than others, because every value computed from them is rounded to f16,
// bf16 or a narrower float before it is stored (docs/numerics.md).
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// Returns for every node whether it is an exp of f32 or a narrower float that may be less exact. The value of an exp of
// f32 must reach outputs and other operations only through casts to narrower floats. Before the cast there may only be
// products, quotients, sums over an axis, contractions, extremes, selections and views. These do not make a relative
// error larger; that of a sum is relative to the sum of its terms' magnitudes.
std::vector<bool> rounded_exps(const Graph& graph);

// Whether the graph has an exp and rounded_exps() is true for every exp in it.
bool rounds_all_exps(const Graph& graph);

// Returns how much larger the absolute error of an exp that rounded_exps() marks may be than that of other exps;
// `value` is its result for `x`. The kernel may multiply the argument by log2(e) and round it once, and results below
// the smallest normal number of f32 may become 0.
double error_of_rounded_exp(double x, double value);

}  // namespace wl
