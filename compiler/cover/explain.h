// Why a cover is what it is, for people: for each group what it saves, and what was not done instead (merging it with a
// neighbour, cutting it in two) at what price or for which reason.
#pragma once

#include <string>

#include "compiler/cover/cover.h"

namespace wl {

struct CoverExplanation {
  std::string text;
  std::string picture;  // SVG: ops as boxes in the colour of their group, in rows by depth
};

// Of any cover of the graph. Times are the cost model's.
absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine);

// Inside search/.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover);

}  // namespace wl
