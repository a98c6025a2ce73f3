// Times whole chains of kernels in interleaved rounds. The coordinator chooses among covers of a graph by these times
// (docs/design/covers.md#whole-covers).
#pragma once

#include "worker/measure.h"

namespace wl {

// Does what measure() does, for a batch that has chains: returns one trial for each chain, in the order of the chains.
// A chain must write every element of the outputs and nothing else. Its values are not compared, since each of its
// kernels was verified alone. If the buffers do not fit into memory, every trial says so. CPUs only.
absl::StatusOr<Measured> measure_chains(const Batch& batch, const MeasureOptions& options);

}  // namespace wl
