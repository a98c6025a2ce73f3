// Random groups like attention, whose kernels walk the keys in turns (parts of the keys, one after another): the
// kernels compute what the groups' graphs say.
#include <gtest/gtest.h>

#include <set>

#include "compiler/base/splitmix.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/axes.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

// Draws a group like attention: heads that may share keys; scores that may be scaled, masked or added to; exp or exp2
// of the scores minus their maximum; the products of these with values; and a division before the products, after them
// or none.
class Drawn {
 public:
  explicit Drawn(uint64_t seed) : state_(mix(seed)) {}

  Graph graph() {
    const int64_t heads = 1 + below(3), shared = below(2) == 0 ? 1 : 2;
    const int64_t rows = below(3) == 0 ? 1 + below(80) : below(2) == 0 ? 128 : 16 << below(3);
    const int64_t keys = below(2) == 0 ? 17 + below(150) : 16 * (2 + below(7)), depth = 1 + below(9),
                  wide = 1 + below(20);
    const DType narrow = below(2) == 0 ? DType::bf16 : DType::f16, type = below(4) == 0 ? narrow : DType::f32;
    const bool later = below(2) == 0;  // whether rows come before heads in memory
    shape_ = {heads, shared, rows, keys};
    const auto q = in("q", later ? Shape{rows, heads, shared, depth} : Shape{heads, shared, rows, depth}, type);
    const auto k = in("k", below(2) == 0 ? Shape{heads, keys, depth} : Shape{heads, depth, keys}, type);
    const bool columns = out_.node(k).shape[1] == depth && depth != keys;
    scores_ = out_.contract(q, k, cat(later ? "mhgk" : "hgmk", columns ? ",hkn" : ",hnk", "->hgmn"),
                            below(2) == 0 ? DType::f32 : type);
    if (out_.node(scores_).dtype != DType::f32) scores_ = out_.cast(scores_, DType::f32);
    for (int64_t i = below(3); i > 0; --i) change_scores();
    const NodeId largest = out_.reduce(Op::reduce_max, scores_, {3});
    const NodeId powers = out_.elementwise(below(2) == 0 ? Op::exp : Op::exp2, {out_.sub(scores_, along(largest))});
    const NodeId sum = out_.reduce(Op::reduce_sum, powers, {3});
    NodeId weights = powers;
    const int64_t division = below(4);
    if (division == 0) weights = out_.div(powers, along(sum));
    if (division == 1) weights = out_.mul(along(out_.elementwise(Op::rcp, {sum})), powers);
    if (below(4) == 0) weights = out_.mul(weights, along_rows(in("kept", {keys})));
    const NodeId v = in("v", {heads, keys, wide}, type);
    if (type != DType::f32) weights = out_.cast(weights, type);
    NodeId result = out_.contract(weights, v, below(2) == 0 ? "hgmn,hnd->hgmd" : "hgmn,hnd->mhgd");
    if (type != DType::f32 && below(2) == 0) result = out_.cast(result, DType::f32);
    const bool moved = out_.node(result).shape != Shape{heads, shared, rows, wide};
    if (division == 2 && !moved && out_.node(result).dtype == DType::f32)
      result = out_.div(result, out_.broadcast(sum, out_.node(result).shape, {0, 1, 2}));
    if (below(3) == 0) result = out_.add(result, in("residual", out_.node(result).shape, out_.node(result).dtype));
    out_.output("y", result);
    return out_.finish().value();
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(split_mix(state_) % static_cast<uint64_t>(n)); }
  NodeId in(const std::string& name, Shape shape, DType dtype = DType::f32) {
    return out_.input(cat(name, out_.size()), dtype, shape);
  }
  NodeId along(NodeId rows) { return out_.broadcast(rows, shape_, {0, 1, 2}); }
  NodeId along_rows(NodeId keys) { return out_.broadcast(keys, shape_, {3}); }

  void change_scores() {
    switch (below(7)) {
      case 0:
        scores_ = out_.mul(scores_, out_.constant_like(0.3, scores_));
        return;
      case 1:
        scores_ = out_.add(scores_, along_rows(in("mask", {shape_[3]})));
        return;
      case 2:
        scores_ = out_.add(scores_, out_.broadcast(in("bias", {shape_[2], shape_[3]}), shape_, {2, 3}));
        return;
      case 3: {
        const bool all_rows = below(2) == 0;
        const Shape shape = all_rows ? Shape{shape_[3]} : Shape{shape_[2], shape_[3]};
        const NodeId seen = out_.input(cat("seen", out_.size()), DType::b1, shape);
        const NodeId mask =
            out_.broadcast(seen, shape_, all_rows ? std::vector<int64_t>{3} : std::vector<int64_t>{2, 3});
        scores_ = out_.elementwise(Op::select, {mask, scores_, out_.constant_like(-1e9, scores_)});
        return;
      }
      default:
        mask_by_places();
    }
  }

  void mask_by_places() {
    const Shape plane = {shape_[2], shape_[3]};
    const NodeId row = out_.iota(DType::i32, plane, 0), key = out_.iota(DType::i32, plane, 1);
    const bool added = below(2) == 0, infinite = below(2) == 0;
    const int64_t shift = infinite ? below(40) - 20 : below(20);
    const NodeId last = out_.add(row, out_.constant_like(static_cast<double>(shift), row));
    const bool seen = below(2) == 0;
    const NodeId test = out_.elementwise(seen ? (below(2) == 0 ? Op::le : Op::lt) : Op::gt, {key, last});
    const double never = infinite ? -INFINITY : -1e9;
    const NodeId mask = out_.broadcast(test, shape_, {2, 3});
    const NodeId low = out_.constant_like(never, scores_);
    const NodeId other = added ? out_.constant_like(0, scores_) : scores_;
    const NodeId chosen = out_.elementwise(Op::select, {mask, seen ? other : low, seen ? low : other});
    scores_ = added ? out_.add(scores_, chosen) : chosen;
  }

  uint64_t state_;
  Shape shape_;
  NodeId scores_ = -1;
  Builder out_;
};

TEST(OnePass, RandomGroupsMeanTheGraph) {
  const uint64_t first = testing::test_seed(20261125);
  const auto wanted = static_cast<int>(testing::scaled(150));
  int groups = 0, kernels = 0, turning = 0, limited = 0, with_rest = 0, limited_rest = 0;
  for (uint64_t seed = first; groups < wanted; ++seed, ++groups) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = Drawn(seed).graph();
    constexpr const char* kMachines[] = {"cpu:avx2", "cpu:avx512", "sim:cuda"};
    const Machine machine = testing::machine_with(kMachines[seed % std::size(kMachines)]);
    const auto domain = stitch(graph, machine);
    if (!domain.ok()) continue;
    const Space space = space_of(graph, *domain, machine).value();
    if (axis_of(space.axes, kTurnLength) == nullptr) continue;
    ++turning;
    for (const Stitched& choice : domain->stitch->choices) {
      const bool limits = choice.turns.visited.axis >= 0, rest = choice.turns.rest > 0;
      limited += limits ? 1 : 0;
      with_rest += rest ? 1 : 0;
      limited_rest += limits && rest ? 1 : 0;
    }
    const size_t step = 1 + seed % 3;
    std::vector<Point> points;
    for (size_t i = seed % step; i < space.seeds.size() && points.size() < 6; i += step)
      if (space.schedule(space.seeds[i])[kTurnLength] != 0) points.push_back(space.seeds[i]);
    testing::expect_meanings(graph, *domain, space, machine, points, &kernels);
    if (HasFatalFailure()) return;
  }
  std::printf("%d groups, %d in turns, %d kernels; choices: %d limited, %d with a rest, %d with both\n", groups,
              turning, kernels, limited, with_rest, limited_rest);
  EXPECT_GT(turning, groups / 2);
  // In a small sample of groups, perhaps no group has a way to stitch it that skips turns (`limited`) or has a shorter
  // last turn (`with_rest`), so these counts are not checked.
  if (wanted < 20) return;
  EXPECT_GT(limited, 0);
  EXPECT_GT(with_rest, 0);
}

// Returns the names of a block's buffers in shared memory.
std::set<std::string> shared_by(const Kernel& kernel) {
  std::set<std::string> out;
  for (const KernelBuffer& buffer : kernel.buffers)
    if (buffer.level == Level::kShared) out.insert(buffer.name);
  return out;
}

TEST(Resident, RandomAttentionMeansTheGraph) {
  const uint64_t first = testing::test_seed(20261127);
  constexpr const char* kMachines[] = {"cuda:sm_80", "hip:gfx942", "cuda:sm_90a"};
  const auto wanted = static_cast<int>(testing::scaled(24));
  int kernels = 0, groups = 0;
  for (uint64_t seed = first; groups < wanted; ++seed, ++groups) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_with(kMachines[seed % std::size(kMachines)]);
    const Graph graph = testing::drawn_resident_attention(seed);
    const Domain domain = stitch(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    const std::vector<Point> points = testing::with_resident_values(space, space.seeds);
    if (points.empty()) continue;
    for (const Point& legal : points) {
      const auto kernel = lower(graph, domain, space.schedule(legal), machine);
      ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(graph) << space.text(legal);
    }
    testing::expect_meanings(graph, domain, space, machine, {points[seed % points.size()]}, &kernels,
                             [](const Kernel& kernel, const Point&) {
                               // Shared memory holds operands of products ("turn") and coordinates along an axis
                               // ("counted"), but no intermediate values.
                               for (const std::string& name : shared_by(kernel))
                                 EXPECT_TRUE(name == "turn" || name.starts_with("counted")) << name;
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d groups, %d kernels\n", groups, kernels);
  EXPECT_GT(kernels, 2 * groups / 3);
}

// The keys and values of one turn (128 keys, 128 features) exceed the shared memory that a block of an MI300X may have.
TEST(Resident, PlansFitSharedMemory) {
  const Machine machine = testing::machine_with("hip:gfx942");
  const Graph graph = parse(testing::attention_of_halves("bf16", 256, 512, 128, 128)).value();
  const Domain domain = stitch(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const std::vector<Point> points = testing::with_resident_values(space, space.seeds);
  EXPECT_FALSE(points.empty());
  for (const Point& point : points) {
    const auto kernel = lower(graph, domain, space.schedule(point), machine);
    EXPECT_TRUE(kernel.ok()) << kernel.status() << space.text(point);
  }
}

}  // namespace
}  // namespace wl
