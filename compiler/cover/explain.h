// Explains a cover to people: what each group saves, and what the alternatives (merging it with a neighbour, cutting it
// in two) would cost or why they are not legal.
#pragma once

#include <string>

#include "compiler/cover/cover.h"

namespace wl {

struct CoverExplanation {
  std::string text;
  std::string picture;  // SVG: ops as boxes in the colour of their group, in rows by depth
};

// Works for any cover of the graph. Times are the cost model's.
absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine);

// For this folder only.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover);

}  // namespace wl
