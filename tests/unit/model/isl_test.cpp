// Compares the numbers of elements and cache lines of the reuse analysis with exact counts by isl (Integer Set
// Library), at sizes for which a walk over every access would take long. Skipped where libisl-dev is not installed.
#include <gtest/gtest.h>

#include "compiler/model/reuse.h"
#include "tests/unit/model/contractions.h"

#ifdef WARPLOOM_ISL
#include <isl/ctx.h>
#include <isl/set.h>
#include <isl/val.h>
#endif

namespace wl {
namespace {

#ifdef WARPLOOM_ISL
// Returns the number of points in the set that `text` describes.
double isl_count(const std::string& text) {
  isl_ctx* ctx = isl_ctx_alloc();
  isl_set* set = isl_set_read_from_str(ctx, text.c_str());
  isl_val* count = isl_set_count_val(set);
  const double n = isl_val_get_d(count);
  isl_val_free(count);
  isl_set_free(set);
  isl_ctx_free(ctx);
  return n;
}

// Returns a set in isl's syntax: the elements (granule 1) or cache lines (granule: elements per line) that reference
// `r` touches in one iteration of the loop `stop`.
std::string isl_set_of(const Reuse& reuse, int r, int stop, int64_t granule) {
  const Reuse::Reference& reference = reuse.references()[r];
  const Kernel& kernel = reuse.kernel();
  const Slice& slice = reference.instr->slice;
  const Tile& tile = kernel.tiles[reference.store ? reference.instr->args[0] : reference.instr->result];
  std::string sum = cat(slice.offset.base), names, limits;
  int next = 0;
  const auto dimension = [&](int64_t step, int64_t count) {
    const std::string name = cat("i", next++);
    append(&sum, " + ", step, "*", name);
    append(&names, names.empty() ? "" : ",", name);
    append(&limits, " and 0 <= ", name, " < ", count);
  };
  for (size_t axis = 0; axis < slice.strides.size(); ++axis) dimension(slice.strides[axis], tile.layout.shape[axis]);
  for (int loop = reference.loop; loop != stop; loop = reuse.loops()[loop].parent)
    for (const auto& [var, coefficient] : slice.offset.terms)
      if (var == reuse.loops()[loop].var) dimension(coefficient, static_cast<int64_t>(reuse.loops()[loop].trips));
  return cat("{ [x] : exists (", names, " : ", granule, "*x <= ", sum, " < ", granule, "*x + ", granule, limits, ") }");
}
#endif

TEST(Isl, CountsTheSameElementsAndLines) {
#ifndef WARPLOOM_ISL
  GTEST_SKIP() << "libisl-dev is not installed";
#else
  const char* const big = R"(graph {
  %0 = input "a" : f32[448,768] normal(0,1)
  %1 = input "b" : f32[768,1536] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[448,1536]
  output "y" %2
})";
  int compared = 0;
  for (const char* text : {big, testing::kConvolution})
    for (const testing::Scheduled& each : testing::scheduled(text, 1, 3, 5)) {
      const Reuse reuse(each.kernel);
      for (int r = 0; r < static_cast<int>(reuse.references().size()); ++r) {
        const Reuse::Reference& reference = reuse.references()[r];
        const auto& terms = reference.instr->slice.offset.terms;
        // isl_set_of() describes only loops with a fixed trip count, whole tiles, and addresses without derived
        // variables.
        const bool plain =
            reference.instr->guards.empty() &&
            each.kernel.tiles[reference.store ? reference.instr->args[0] : reference.instr->result].bound.empty() &&
            std::all_of(terms.begin(), terms.end(),
                        [&](const auto& term) { return each.kernel.vars[term.first].kind == Var::Kind::kLoop; });
        if (!plain) continue;
        for (int loop = reference.loop; loop > 0; loop = reuse.loops()[loop].parent) {
          bool whole = true;
          for (int l = reference.loop; l != loop; l = reuse.loops()[l].parent)
            whole = whole && reuse.loops()[l].trips == std::floor(reuse.loops()[l].trips);
          if (!whole) continue;
          const Touched touched = reuse.touched(r, loop);
          EXPECT_EQ(touched.elements, isl_count(isl_set_of(reuse, r, loop, 1))) << each.plan << " reference " << r;
          const double lines = isl_count(isl_set_of(reuse, r, loop, kLineBytes / 4));
          // The reuse analysis may count one more cache line for each contiguous piece, since a piece can start in the
          // middle of a line.
          EXPECT_NEAR(touched.lines, lines, 0.5 * lines) << each.plan << " reference " << r;
          ++compared;
        }
      }
    }
  EXPECT_GT(compared, 20);
#endif
}

}  // namespace
}  // namespace wl
