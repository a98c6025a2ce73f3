// Chooses the layout of values between kernels. In ONNX, the axes of channels precede those of pixels in a
// convolution's result. If the channels are stored last instead, the channels of a pixel are neighbours in memory.
// Kernels can then vectorise over channels, whatever the size of an image, and transpose neither the image that they
// read nor the result that they store.
#pragma once

#include "compiler/ir/graph.h"

namespace wl {

// Returns a graph of the same values in which results of convolutions with weights are stored with their channels
// innermost. So are the values computed from these results, as long as this is done by elementwise ops, views, windows,
// reductions and contractions. Transposes restore the original order before graph outputs, before gathers, and before
// reshapes that combine axes which the new order separates. A graph without such convolutions is returned as it is. The
// returned graph is not simplified. Fails only if `graph` is invalid.
absl::StatusOr<Graph> channels_last(const Graph& graph);

}  // namespace wl
