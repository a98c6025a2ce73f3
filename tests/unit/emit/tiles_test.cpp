// Kernels that multiply in tile registers (AMX), on machines that need not have AMX. Compiled for another target, a
// kernel's text keeps its tiles in memory and must compute its graph. Compiled for AMX, it must contain AMX
// instructions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_replace.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/tile_registers.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/points.h"
#include "tests/unit/schedule/tile_products.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

const std::string kTarget = "cpu:amx";

// Returns the best CPU target that this machine can run, except cpu:amx. For such a target, tiles are kept in memory.
std::string own_target() {
  for (const CpuTarget& row : cpu_targets())
    if (row.name != kTarget && row.runs_here()) return row.name;
  return "cpu:generic";
}

struct Printed {
  Source source;
  Kernel kernel;
  std::string plan;
};

// Returns up to `most` kernels with matrix instructions: one for the first suitable seed, the others for random points.
std::vector<Printed> kernels_of(const Graph& group, size_t most, uint64_t seed) {
  const Machine machine = testing::machine_named(kTarget);
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const auto in_tiles = [&](const Point& point) { return space.schedule(point)[kMatrix] != kNoMatrix; };
  std::vector<Point> points;
  for (const Point& point : space.seeds)
    if (points.empty() && in_tiles(point)) points.push_back(point);
  for (Point& point : testing::drawn_points(space, most - points.size(), seed, in_tiles))
    points.push_back(std::move(point));
  std::vector<Printed> out;
  for (const Point& point : points) {
    Kernel kernel = lower(group, domain, space.schedule(point), machine).value();
    Source source = emit(kernel, machine).value();
    out.push_back({std::move(source), std::move(kernel), space.text(point)});
  }
  return out;
}

void add(testing::CompiledChecks& checks, int group, Printed one) {
  one.source.target = own_target();
  checks.add(group, std::move(one.source), std::move(one.plan));
}

TEST(TileCode, MeansItsGraphWithRegistersInMemory) {
  testing::CompiledChecks checks("tiles");
  const uint64_t first = testing::test_seed(20261204);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed) {
    const auto group = parse(testing::tile_product(seed));
    ASSERT_TRUE(group.ok()) << group.status();
    const auto number = checks.group(*group);
    ASSERT_TRUE(number.ok()) << number.status() << print(*group);
    for (Printed& one : kernels_of(*group, 2, seed)) add(checks, *number, std::move(one));
  }
  if (testing::scaled(40) >= 30) {
    EXPECT_GT(checks.kernels(), 30);
  }
  checks.expect_right();
}

// Products that need two by two accumulator registers, whose last tiles along the rows and along k are partial, and
// whose loop over k has more steps than are unrolled.
const char* const kProducts[] = {R"(graph {
  %0 = input "a" : bf16[51,72,2] normal(0,1)
  %1 = input "b" : bf16[2,72,32,2] normal(0,1)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : bf16[51,2,32]
  output "y" %2
})",
                                 R"(graph {
  %0 = input "a" : u8[51,72,4] uniform(0,255)
  %1 = input "b" : i8[2,72,32,4] uniform(-128,127)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : i32[51,2,32]
  output "y" %2
})",
                                 R"(graph {
  %0 = input "a" : i8[51,72,4] uniform(-128,127)
  %1 = input "b" : u8[2,72,32,4] uniform(0,255)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : i32[51,2,32]
  output "y" %2
})"};
const char* const kInstructions[] = {"tdpbf16ps", "tdpbusd", "tdpbsud"};

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from << " is not in\n" << text;
  return absl::StrReplaceAll(text, {{from, to}});
}

TEST(TileCode, DamagedTextDoesNotMeanItsGraph) {
  const Graph group = parse(kProducts[0]).value();
  // For each damage: the text that is replaced, the text that replaces it, and (as a comment) what the damaged kernel
  // does wrong.
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"<1, 4, 7>", "<1, 4, 6>"},                                       // multiplies the wrong columns
      {"<2, 5, 6>", "<3, 5, 6>"},                                       // adds to the wrong accumulator register
      {"wl_tile_zero<3>", "wl_tile_zero<0>"},                           // does not clear an accumulator register
      {"wl_tile_store<1>(tiles, ", "wl_tile_store<1>(tiles, 1 + "},     // stores the result one column too far
      {"wl_tile_load<5>(tiles, ", "wl_tile_load<5>(tiles, -144L + "}};  // loads the rows before the right ones
  testing::CompiledChecks checks("damaged_tiles");
  const int number = checks.group(group).value();
  const Printed whole = kernels_of(group, 1, 1).at(0);
  add(checks, number, whole);
  for (const auto& [from, to] : damages) {
    Printed damaged = whole;
    damaged.source.text = replaced(whole.source.text, from, to);
    damaged.source.entry = cat(whole.source.entry, checks.kernels());
    damaged.source.text = replaced(damaged.source.text, whole.source.entry, damaged.source.entry);
    damaged.plan = cat(from, " became ", to);
    add(checks, number, std::move(damaged));
  }
  EXPECT_EQ(checks.run().size(), damages.size());
}

// Runs a command in `folder` and returns its standard output. If the command fails, the test fails.
std::string output_of(const std::string& folder, std::vector<std::string> arguments) {
  Process::Options options;
  options.arguments = std::move(arguments);
  options.folder = folder;
  options.inherit_environment = true;
  absl::StatusOr<Process> process = Process::start(options);
  if (!process.ok()) return "";
  Drain drain(int64_t{1} << 24);
  const absl::StatusOr<Exit> exit = process->wait(monotonic_ns() + 300'000'000'000, drain);
  EXPECT_TRUE(exit.ok() && !exit->signalled && exit->code == 0) << options.arguments[0] << ": " << drain.text();
  return std::string(drain.text());
}

int64_t count_in(const std::string& text, const std::string& word) {
  int64_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Compilers do not unroll the loops around products, so for each kMma instruction of the kernel the machine code has
// four instructions of each kind: one per tile register of sums or of factors.
TEST(TileCode, HasTheInstructionsOfItsPlan) {
  if (!program_runs("objdump")) GTEST_SKIP() << "objdump is not installed";
  const CpuTarget* target = nullptr;
  for (const CpuTarget& row : cpu_targets())
    if (row.name == kTarget) target = &row;
  ASSERT_NE(target, nullptr);
  const Scratch scratch;
  for (const CpuCompiler& compiler : cpu_compilers()) {
    if (!program_runs(compiler.program)) continue;
    for (size_t i = 0; i < std::size(kProducts); ++i) {
      SCOPED_TRACE(cat(compiler.name, " ", kInstructions[i]));
      const Printed one = kernels_of(parse(kProducts[i]).value(), 1, 1).at(0);
      const auto shapes = shapes_of(one.kernel, one.kernel.body);
      ASSERT_TRUE(shapes.has_value());
      ASSERT_EQ(shapes->size(), 8u);
      std::ofstream(scratch.path(kUnitText)) << one.source.prelude << one.source.text;
      output_of(scratch.folder(), {"/bin/sh", "-c", build_script(compiler, *target)});
      const std::string code = output_of(scratch.folder(), {"objdump", "-d", kUnitObject});
      SCOPED_TRACE(one.source.text);
      const int64_t products = testing::instrs_in(one.kernel.body, InstrOp::kMma);
      EXPECT_EQ(products, 2);  // the kernel has one kMma instruction for each of its two tiles of rows
      const std::pair<const char*, int64_t> expected[] = {{"ldtilecfg", 1},
                                                          {"tilerelease", 1},
                                                          {kInstructions[i], 4 * products},
                                                          {"tileloadd", 4 * products},
                                                          {"tilestored", 4 * products},
                                                          {"tilezero", 4 * products}};
      for (const auto& [name, count] : expected) EXPECT_EQ(count_in(code, name), count) << name;
    }
  }
}

}  // namespace
}  // namespace wl
