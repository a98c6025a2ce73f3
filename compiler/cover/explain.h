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

// Explains any cover of the graph whose groups analyze_group() accepts. Times are the cost model's. `work` may be null;
// if it ends first, its status is the result.
absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Cover& cover, const Machine& machine,
                                         Work* work = nullptr);
// The groups of the launches of `result`, in their order. Each launch must store something that an output needs.
Cover cover_of(const Composition& result);
// Explains the launches of `result`: group N is its step N. InvalidArgument also when a step stores nothing that an
// output needs.
absl::StatusOr<CoverExplanation> explain(const Composition& result, const Machine& machine, Work* work = nullptr);
// The picture of an explanation, which is made for white pages, with a style that draws its lines lighter on dark ones.
// The style is for files: pages that say which styles they allow (Content-Security-Policy) take the picture without it.
std::string themed(std::string picture);

// For this folder only.
class CoverValues;
std::string picture_of(const CoverValues& values, const Cover& cover);

}  // namespace wl
