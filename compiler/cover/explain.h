// Explains a cover to people: what each group saves, and what the alternatives (merging the group with a neighbour,
// cutting it in two) would cost or why they are not legal.
#pragma once

#include <string>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/ir/compose/compose.h"

namespace wl {

struct CoverExplanation {
  std::string text;
  // SVG: a box for each op, in the colour of its group; rows of boxes by depth in the graph. The first box of each
  // group has the group's memory traffic and time as the text has them.
  std::string picture;
};

// Explains any cover of the graph whose groups analyze_group() accepts. Times are the cost model's. If `work` (may be
// null) ends first, its status is returned.
absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine,
                                         Work* work = nullptr);
// Returns one group for each launch of `result`, in launch order. Each launch must store something that an output
// needs.
Cover cover_of(const Composition& result);
// Explains the launches of `result`: group N is launch N. Like explain() of a cover, but also returns InvalidArgument
// if a launch stores nothing that an output needs.
absl::StatusOr<CoverExplanation> explain(const Composition& result, const Machine& machine, Work* work = nullptr);
// Adds a style to the picture of an explanation, which is drawn for white pages: where dark colours are preferred, its
// lines and texts are light and the page behind it is dark. On paper it stays as it was drawn. This is for pictures in
// files. Pages whose Content-Security-Policy restricts styles must show the picture without it.
std::string themed(std::string picture);

// picture_of() returns the SVG of an Explanation; it is used only in compiler/cover. `prices`: for each group of the
// cover, its traffic and time as a text.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover, const std::vector<std::string>& prices);

}  // namespace wl
