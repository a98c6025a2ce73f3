// Explains a cover to people: what each group saves, and what the alternatives (merging it with a neighbour, cutting it
// in two) would cost or why they are not legal.
#pragma once

#include <string>

#include "compiler/cover/cover.h"
#include "compiler/ir/compose/compose.h"

namespace wl {

struct CoverExplanation {
  std::string text;
  std::string picture;  // SVG: ops as boxes in the colour of their group, in rows by depth
};

// Works for any cover of the graph. Times are the cost model's. `work` may be null; if it ends before, its status is
// the answer.
absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine,
                                         Work* work = nullptr);
// The groups of a result's launches, in their order; each step must store something that is needed.
Cover cover_of(const Composition& result);
// Of what a result launches: group N is its step N. InvalidArgument also: a step stores nothing that is needed.
absl::StatusOr<CoverExplanation> explain(const Composition& result, const Machine& machine, Work* work = nullptr);

// For this folder only.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover);

}  // namespace wl
