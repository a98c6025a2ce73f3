// Products that are stages of stitched groups: they copy operands asynchronously and use matrix instructions that read
// shared memory, as products alone do, and every schedule computes its graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using testing::instrs_in;
using testing::machine_with;

// Draws a norm and the product that reads it or, for an odd seed, two products with a function between them. Factors
// are 16-bit floats that are stored along K or across it, and rows of odd lengths, which no copy of whole words may
// read.
Graph drawn_stages(uint64_t seed) {
  uint64_t state = seed;
  const auto draw = [&](std::initializer_list<int64_t> of) { return of.begin()[split_mix(state) % of.size()]; };
  Builder out;
  const DType type = draw({0, 1}) == 0 ? DType::bf16 : DType::f16;
  const int64_t rows = draw({64, 128, 96}), depth = draw({64, 128, 192, 136}), columns = draw({64, 128, 72, 65});
  const auto product = [&](NodeId left, int64_t k, int64_t n, const char* name) {
    const bool turned = draw({0, 1}) == 0;
    const NodeId right = out.input(name, type, turned ? Shape{n, k} : Shape{k, n});
    return out.contract(left, right, turned ? "mk,nk->mn" : "mk,kn->mn", type);
  };
  NodeId value = out.input("x", type, {rows, depth});
  if (seed % 2 != 0) {
    const int64_t between = draw({64, 128, 80});
    value = out.elementwise(Op::tanh, {product(value, depth, between, "a")});
    out.output("y", product(value, between, columns, "b"));
    return out.finish().value();
  }
  const NodeId wide = out.cast(value, DType::f32);
  const NodeId squares = out.reduce(Op::reduce_sum, out.mul(wide, wide), {1});
  const NodeId scale = out.elementwise(Op::rsqrt, {out.add(squares, out.constant_like(1, squares))});
  const NodeId scaled = out.mul(wide, out.broadcast(scale, {rows, depth}, {0}));
  out.output("y", product(out.cast(scaled, type), depth, columns, "w"));
  return out.finish().value();
}

// What a point's stages choose.
struct Stages {
  bool copies = false, in_memory = false;
};
Stages stages_of(const Space& space, const Point& point) {
  Stages out;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    const Axis& axis = space.axes[i];
    const int64_t value = axis.values[static_cast<size_t>(point[i])];
    if (axis.choice == kAsyncCopies) out.copies = out.copies || value != 0;
    if (axis.choice == kMatrix && value != kNoMatrix)
      out.in_memory = out.in_memory || multiplies_in_memory(matrices()[static_cast<size_t>(value - 1)].op);
  }
  return out;
}

TEST(StitchedProducts, CopyAheadAndMultiplyInSharedMemory) {
  const uint64_t first = testing::test_seed(20261203);
  int kernels = 0, copying = 0, in_memory = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed)
    for (const char* target : {"cuda:sm_90a", "cuda:sm_80", "hip:gfx942"}) {
      SCOPED_TRACE(cat("seed ", seed, " ", target));
      const Graph group = drawn_stages(seed);
      const Machine machine = machine_with(target);
      const Domain domain = analyze_group(group, machine).value();
      ASSERT_EQ(domain.cls, LoopClass::kStitched);
      const Space space = space_of(group, domain, machine).value();
      // The drawn points come after the seeds; the last ones of each kind are lowered.
      const std::vector<Point> drawn = testing::sample_points(space, 300, seed);
      std::vector<Point> points;
      for (const bool wanted : {false, true}) {
        int found = 0;
        for (size_t i = drawn.size(); i-- > 0 && found < 2;) {
          const Stages stages = stages_of(space, drawn[i]);
          if (!stages.copies || stages.in_memory != wanted) continue;
          points.push_back(drawn[i]);
          ++found;
        }
      }
      testing::expect_meanings(group, domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point& point) {
                                 const Stages stages = stages_of(space, point);
                                 EXPECT_GT(instrs_in(kernel.body, InstrOp::kAsyncLoad), 0) << space.text(point);
                                 EXPECT_EQ(instrs_in(kernel.body, InstrOp::kMmaWait) > 0, stages.in_memory);
                                 ++copying;
                                 in_memory += stages.in_memory;
                               });
      if (HasFatalFailure()) return;
    }
  std::printf("%d kernels, %d with asynchronous copies, %d of them multiply in shared memory\n", kernels, copying,
              in_memory);
  if (testing::scaled(24) < 6) return;
  EXPECT_GT(copying, 20);
  EXPECT_GT(in_memory, 10);
}

}  // namespace
}  // namespace wl
