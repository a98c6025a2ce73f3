// Chooses the layout of values between kernels. In ONNX, a convolution's result has its channels before its pixels. If
// the channels are stored last instead, those of a pixel are neighbours in memory. Kernels can then vectorise over
// channels, whatever the size of an image, and neither transpose the image that they read nor the result that they
// store.
#pragma once

#include "compiler/ir/graph.h"

namespace wl {

// Returns a graph of the same values in which results of convolutions with weights are stored with their channels
// innermost. Values computed from them have that order too, as far as ops can work in it: elementwise ops, views,
// windows, reductions and contractions. Transposes restore the original order before graph outputs, before reshapes
// that combine axes which the new order separates, and before gathers. A graph without such convolutions is
// returned as it is. The result is not simplified. Fails only if the graph is invalid.
absl::StatusOr<Graph> channels_last(const Graph& graph);

}  // namespace wl
