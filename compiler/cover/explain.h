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
  // An SVG with a rectangle for each op, in the colour of the op's group; each row of rectangles is one depth in the
  // graph. The first rectangle of a group also shows the group's memory traffic and time, as `text` has them.
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
// lines and texts are light and the page behind it is dark. In print, the picture stays as it was drawn. The style is
// for pictures in files; pages whose Content-Security-Policy restricts styles must show the picture without it.
std::string themed(std::string picture);

// Returns CoverExplanation::picture; used only in compiler/cover. `prices`: for each group of the cover, its memory
// traffic and time as a text.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover, const std::vector<std::string>& prices);

}  // namespace wl
