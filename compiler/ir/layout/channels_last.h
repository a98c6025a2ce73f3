// The layout of values between kernels. A convolution's result has its channels before its pixels, as ONNX writes it.
// Stored the other way, channels are neighbours: kernels then run vectors over channels, whatever the size of an image,
// and neither copy the image to turn it nor transpose what they store.
#pragma once

#include "compiler/ir/graph.h"

namespace wl {

// The same values, where results of convolutions with weights are stored with their channels innermost, and so is what
// follows from them as far as ops can do their work in that order: elementwise ops, views, windows, reductions,
// contractions. Elsewhere transposes stand in between: before graph outputs, whose order is given, before reshapes that
// tear channels and pixels apart, and before gathers. Without such convolutions the graph is returned as it is. The
// result is not simplified. Fails only if the graph is invalid.
absl::StatusOr<Graph> channels_last(const Graph& graph);

}  // namespace wl
