// Levels of the values that the stages of a block pass on (domain/stitch.h): a value lies in scratch, or in device
// memory, or each of its readers computes it again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/domain/stitch.h"

namespace wl {

// A value that one stage of a block stores and later ones read.
struct PassedValue {
  NodeId node = -1;  // in the graph of the block's work
  int64_t bytes = 0;
};

// Returns the values that some groups of a cover store and others read, in the order in which they are stored.
std::vector<PassedValue> passed_values(const Graph& graph, const Cover& cover);

// Returns the cover in which no group stores `value`, and each group that read it computes it again, by elementwise ops
// on values as large as it is, from inputs and stored values. The group that stored it stores instead what these ops
// read. nullopt: the value is no result of such ops, they cost more than 6 * kCheapWork issue slots (two exponentials),
// or what would be stored instead takes more than half of the value's bytes.
std::optional<Cover> computed_again(const Graph& graph, const Cover& cover, NodeId value);

// Returns the cover in which the values with the level kAgain are computed again, one after the other. `levels`: the
// level of each of the values; the values beyond its end are in scratch.
std::optional<Cover> with_levels(const Graph& graph, Cover cover, std::span<const PassedValue> values,
                                 std::span<const ValueLevel> levels);

// Returns the levels that the values of a block may have together, besides that all are in scratch. With that, there
// are at most kMostLevels such lists, for which the smallest values stay in scratch. Device memory is offered on GPUs,
// to values that take more than a quarter of a block's shared memory.
inline constexpr size_t kMostLevels = 6;
std::vector<std::vector<ValueLevel>> other_levels(const Graph& graph, const Cover& cover,
                                                  std::span<const PassedValue> values, const Target& target);

}  // namespace wl
