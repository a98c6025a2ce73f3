// Makes the stages (loop nests) of a block from its share of a group. Internal to this folder.
#pragma once

#include <span>
#include <vector>

#include "compiler/cover/levels.h"
#include "compiler/cover/slab/shareable.h"
#include "compiler/cover/slab/slab.h"
#include "compiler/cover/stitching.h"

namespace wl {

// Returns the way to stitch the group `made` in blocks of `rows` rows, whose share is `slab`. `cover`: the groups of
// the slab's graph that become stages. `levels`: of `values`. InvalidArgument: a stage is no loop nest, or there are
// too many. ResourceExhausted: the values in scratch exceed the shared memory of a block. options.memo must be set.
absl::StatusOr<Stitched> stitched_block(const Shareable& made, const Machine& machine, const Slab& slab, int64_t rows,
                                        const Cover& cover, std::span<const PassedValue> values,
                                        std::vector<ValueLevel> levels, const StitchOptions& options);

// A block that walks `axis` in turns (iterations over parts of it) of `length` elements.
struct TurnsOfBlock {
  int64_t rows = 0, length = 0;
  const CarriedAxis& axis;
  const Slab* rest = nullptr;  // the slab of the last turn if that is shorter, else null
  bool resident = false;       // whether values stay in registers from one stage to the next
};
// The same for such a block, which takes no levels.
absl::StatusOr<Stitched> stitched_turns(const Shareable& made, const Machine& machine, const Slab& slab,
                                        const TurnsOfBlock& turns, const StitchOptions& options);

}  // namespace wl
