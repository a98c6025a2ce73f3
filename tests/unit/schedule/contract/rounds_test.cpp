// Which blocks compute which tiles of a contraction. Persistent blocks compute a tile each in every round; several
// blocks may share a tile of the last round, and blocks on one die may get neighbouring tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/kernel/var_values.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/gpu_product.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using testing::instrs_in;
using testing::machine_with;
using testing::parsed;

TEST(LastRound, OfRandomProductsMeansTheirGraphs) {
  int kernels = 0, matrices = 0, copying = 0;
  const uint64_t first = testing::test_seed(20261210);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(12)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::many_deep_tiles(seed));
    const char* const targets[] = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100"};
    Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    machine.units = 2 + static_cast<int>(seed % 2);
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    testing::expect_meanings(group, domain, space, machine, testing::last_round_points(space, 2, seed), &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               matrices += instrs_in(kernel.body, InstrOp::kMma) > 0;
                               copying += kernel.copiers > 0;
                               EXPECT_EQ(instrs_in(kernel.body, InstrOp::kPass), 1);
                               EXPECT_EQ(kernel.sweeps(), 1);
                               // The shared last round uses the same shared memory as the other rounds.
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(space.schedule(point), 4));
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d with matrices, %d with waves that copy\n", kernels, matrices, copying);
  EXPECT_GE(kernels, testing::scaled(12));
  if (testing::scaled(12) < 8) return;
  EXPECT_GT(matrices, 0);
  EXPECT_GT(copying, 0);
}

// Blocks do not share the tiles of the last round if every block has equally many tiles, or if the shared tiles would
// have more parts than there are blocks.
TEST(LastRound, IsSharedWhereBlocksWouldHaveNone) {
  Machine machine = machine_with("cuda:sm_80");
  machine.units = 4;
  Schedule s;
  for (const auto& [choice, value] : {std::pair{kPersistent, 1}, {kMinBlocks, 1}, {kReductionBlocks, 2}})
    s.set(choice, value);
  EXPECT_EQ(shared_round(s, 8, machine).tiles, 0);
  EXPECT_EQ(shared_round(s, 9, machine).tiles, 1);
  EXPECT_EQ(shared_round(s, 9, machine).parts, 2);
  EXPECT_EQ(shared_round(s, 3, machine).tiles, 0);
  // On 4 blocks, 18 tiles of 128 x 128 leave two tiles for the last round, and 36 tiles of 128 x 64 leave none.
  const Graph group = parsed(testing::shared_factor_product_of("bf16", 768, 384, 256, "mk", "kn"));
  const Space space = space_of(group, analyze(group, machine).value(), machine).value();
  const auto legal = [&](int64_t columns, int64_t parts) {
    Schedule own = space.schedule(space.seeds[0]);
    for (const auto& [choice, value] : {std::pair{kTileRows, int64_t{128}},
                                        {kTileColumns, columns},
                                        {kThreadRows, int64_t{8}},
                                        {kThreadColumns, int64_t{8}},
                                        {kStages, int64_t{2}},
                                        {kRasterRows, int64_t{1}},
                                        {kPersistent, int64_t{1}},
                                        {kMinBlocks, int64_t{1}},
                                        {kReductionBlocks, parts}})
      own.set(choice, value);
    const Point point = point_of(space, own);
    return !point.empty() && space.is_legal(point);
  };
  EXPECT_TRUE(legal(128, 1));
  EXPECT_TRUE(legal(128, 2));
  EXPECT_FALSE(legal(128, 4));
  EXPECT_TRUE(legal(64, 1));
  EXPECT_FALSE(legal(64, 2));
}

// Blocks share the K of convolutions. There the taps of the window are loops over K around the loop that is walked in
// steps.
TEST(SharedK, OfConvolutionsMeansTheirGraphs) {
  int kernels = 0;
  const uint64_t first = testing::test_seed(20261211);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(12)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    testing::Convolution made;
    made.height = 3 + static_cast<int64_t>(seed % 4);
    made.width = 4;
    made.channels = 32;
    made.filters = 24 + 8 * static_cast<int64_t>(seed % 2);
    made.padded = seed % 3 != 0;
    const Graph group = parsed(made.text());
    const char* const targets[] = {"cuda:sm_80", "hip:gfx942", "hip:gfx1100"};
    const Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    const Domain domain = analyze(group, machine).value();
    ASSERT_GT(domain.reduced.size(), 1u);
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> points = testing::shared_points(space, 2, seed);
    ASSERT_FALSE(points.empty());
    testing::expect_meanings(group, domain, space, machine, points, &kernels, [&](const Kernel& kernel, const Point&) {
      EXPECT_EQ(instrs_in(kernel.body, InstrOp::kPass), 1);
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(kernels, testing::scaled(12));
}

// Returns the kernel of a product whose tiles are copied as boxes (by TMA) and are partial along both axes. after()
// changes the kernel's box loads and returns what verify() says.
Kernel with_boxes() {
  const Machine machine = machine_with("cuda:sm_90a");
  const Graph group = parsed(testing::shared_factor_product_of("bf16", 72, 136, 256, "mk", "kn"));
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const std::vector<Point> points = testing::box_points(space, 1, 7);
  EXPECT_FALSE(points.empty());
  return lower(group, domain, space.schedule(points.at(0)), machine).value();
}
template <typename Change>
std::string after(Change change) {
  Kernel kernel = with_boxes();
  testing::each_of(kernel, InstrOp::kBoxLoad, change);
  return std::string(verify(kernel).message());
}

TEST(Boxes, AreOfMatricesAndOfCopiers) {
  const Kernel kernel = with_boxes();
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel);
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kBoxLoad), 2);
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kAsyncLoad), 0);
  const auto is_no_box = ::testing::HasSubstr("no box of a matrix");
  EXPECT_THAT(after([](Instr& instr) { instr.slice.offset.base += 64 * instr.slice.strides[0]; }), is_no_box);
  EXPECT_THAT(after([](Instr& instr) { instr.slice.strides[0] += 4; }), is_no_box);
  EXPECT_THAT(after([](Instr& instr) { instr.into.offset.base += 64; }), is_no_box);
  EXPECT_THAT(after([](Instr& instr) { instr.guards[0].extent -= instr.guards[0].strides[1] == 1 ? 4 : 0; }),
              is_no_box);
  // Only copiers may copy boxes: the computing teams have no phase that tells them when a box has arrived.
  Kernel changed = kernel;
  each_instr(changed.body, [&](Instr& instr) {
    if (instr.role == Role::kCopiers) instr.role = Role::kTeams;
  });
  EXPECT_FALSE(verify(changed).ok());
}

// An operand that is a slice of a larger matrix is copied as boxes only if the slice begins where the matrix begins.
TEST(Boxes, BeginWhereTheirMatrixDoes) {
  const Machine machine = machine_with("cuda:sm_90a");
  const auto space = [&](const std::string& first) {
    const Graph group =
        parsed(cat("graph {\n  %0 = input \"a\" : bf16[136,320] normal(0,1)\n  %1 = input \"b\" : "
                   "bf16[256,136] normal(0,1)\n  %2 = slice %0 starts=[0,",
                   first,
                   "] steps=[1,1] : bf16[136,256]\n  %3 = contract %2 %1 \"mk,kn->mn\" : "
                   "bf16[136,136]\n  output \"y\" %3\n}"));
    const Domain domain = analyze(group, machine).value();
    return std::pair(is_matrix_of(group, domain, 1 - domain.right_operand()),
                     is_matrix_of(group, domain, domain.right_operand()));
  };
  EXPECT_EQ(space("0"), std::pair(true, true));
  EXPECT_EQ(space("8"), std::pair(false, true));
}

// Returns a GPU with this number of multiprocessors on several dies; blocks are assigned to the dies in turn.
Target with_dies(int units, int dies) {
  Target target = *target_named("hip:gfx942").value();
  target.gpu.units = units;
  target.gpu.dies = dies;
  return target;
}

TEST(TilesByDie, MeansTheGraphAndHasNeighboursOnADie) {
  int kernels = 0, uneven = 0, persistent = 0;
  const uint64_t first = testing::test_seed(20261212);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(8)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const int dies = 2 + static_cast<int>(seed % 3);
    const Target target = with_dies(2 * dies, dies);
    Machine machine = machine_with(0);
    machine.target = &target;
    const Graph group =
        parsed(testing::shared_factor_product_of("bf16", 260 + static_cast<int>(seed * 37 % 150), 390, 16));
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    ASSERT_NE(axis_of(space.axes, kTilesByDie), nullptr);
    const std::vector<Point> points = testing::points_with(space, 2, seed, [&](const Schedule& s) {
      return s[kTilesByDie] == 1 && s[kRasterRows] == 1 && product_loops(domain).tiles(s) < 200 &&
             (s[kPersistent] > 0) == (seed % 2 == 0);
    });
    testing::expect_meanings(
        group, domain, space, machine, points, &kernels, [&](const Kernel& kernel, const Point& point) {
          persistent += space.schedule(point)[kPersistent] > 0;
          uneven += kernel.grid % dies != 0;
          // In the first round, consecutive blocks on one die compute consecutive column tiles.
          VarId column = -1;
          for (VarId var = 0; var < static_cast<VarId>(kernel.vars.size()) && column < 0; ++var)
            if (kernel.vars[var].name == "tile_column") column = var;
          ASSERT_GE(column, 0);
          VarValues values(kernel);
          for (int64_t block = 0; block + dies < kernel.grid; ++block) {
            values.set(0, block);
            const int64_t own = values.value(column);
            values.set(0, block + dies);
            EXPECT_EQ(values.value(column), (own + 1) % kernel.vars[column].mod) << space.text(point);
          }
        });
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(kernels, testing::scaled(8));
  if (testing::scaled(8) < 8) return;
  EXPECT_GT(uneven, 0);
  EXPECT_GT(persistent, 0);
}

// If the device has the multiprocessors of only one die of a GPU with several dies, the choice tiles_by_die is not
// offered.
TEST(TilesByDie, IsOfWholeDevices) {
  Machine machine;
  machine.target = target_named("hip:gfx942").value();
  EXPECT_EQ(machine.dies(), 8);
  machine.units = 38;
  EXPECT_EQ(machine.dies(), 1);
  machine.target = target_named("cuda:sm_90a").value();
  EXPECT_EQ(machine.dies(), 1);
}

}  // namespace
}  // namespace wl
