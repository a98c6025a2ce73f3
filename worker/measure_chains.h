// Times whole chains of kernels in turn, by which the coordinator chooses among covers of a graph
// (docs/design/covers.md#whole-covers).
#pragma once

#include "worker/measure.h"

namespace wl {

// As measure(), for a batch that has chains: one trial for each of them, in their order. A chain must write every
// output and nothing else; its values are not compared, since each of its kernels was verified alone. Where the buffers
// do not fit into memory every trial says so.
absl::StatusOr<Measured> measure_chains(const Batch& batch, const MeasureOptions& options);

}  // namespace wl
