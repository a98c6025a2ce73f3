// Which exponentials may be less exact because all that they become is rounded to f16, bf16 or less before it is stored
// (docs/numerics.md).
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// Of every node, whether it is such an exp of f32, or of a narrower float. Its value reaches outputs and other
// operations only through casts to narrower floats, and on the way nothing but products, quotients, sums over an axis,
// contractions, extremes, selections and views, which do not make a relative error larger.
std::vector<bool> rounded_exps(const Graph& graph);

// Whether there are exps of a graph, and all of them are such.
bool rounds_all_exps(const Graph& graph);

// How far such an exp of `x`, `value` large, may be off beside what every exp may: its argument may be multiplied by
// log2(e) and rounded once, and results below the smallest normal number of f32 may be 0.
double error_of_rounded_exp(double x, double value);

}  // namespace wl
