// The emulator catches errors of broken kernels, in whichever order of waves it was started: wrong values (because a
// wave read local memory before another wave wrote it, or a lane got another lane's value) and writes outside an
// argument.
#include "tests/simulated/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/emulated/device.h"
#include "tests/simulated/random_group.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

using testing::EmulatedDevice;
using testing::Mutant;

// The kinds of breakage that change what a kernel computes on the emulator. A missing mask mostly repeats a store of
// the same value, and the emulator completes copies to local memory at once, so missing waits change nothing.
constexpr const char* kBrokenKinds[] = {"barrier", "shuffle", "bound"};

constexpr int kWanted = 4;  // number of mutants of each kind

struct Tally {
  int caught = 0, made = 0;
};

// Breaks a correct kernel once by each kind that has fewer than kWanted mutants so far, and counts the mutants that are
// caught.
void break_one(EmulatedDevice& device, uint64_t seed, std::map<std::string, Tally>& tally) {
  const Machine machine = device.machine();
  const Graph graph =
      seed % 2 == 0 ? parse(testing::ContractionText(seed, 20'000).text()).value() : testing::random_group(seed, 2000);
  const auto domain = analyze(graph, machine);
  if (!domain.ok()) return;
  const Space space = space_of(graph, *domain, machine).value();
  const Point point = testing::sample_points(space, 1, seed).back();
  const auto kernel = lower(graph, *domain, space.schedule(point), machine);
  if (!kernel.ok() || kernel->grid == 0) return;
  const Source source = emit(*kernel, machine).value();
  std::vector<Mutant> all;
  testing::break_kernel(0, source, all);
  std::map<std::string, std::vector<const Mutant*>> by_kind;
  for (const char* kind : kBrokenKinds)
    for (const Mutant& mutant : all)
      if (mutant.kind == kind && tally[kind].made < kWanted) by_kind[kind].push_back(&mutant);
  // A kernel of one wave is right without barriers.
  if (source.threads <= machine.target->gpu.wave) by_kind.erase("barrier");
  if (by_kind.empty()) return;
  const std::string plan = space.text(point);
  const auto right = testing::run_group(device, graph, source, plan, 7);
  EXPECT_EQ(right.value_or(""), "") << plan << source.text;
  if (!right || !right->empty()) return;
  for (const auto& [kind, mutants] : by_kind) {
    const Mutant& mutant = *mutants[seed * 7919 % mutants.size()];
    const auto message = testing::run_group(device, graph, mutant.source, plan, 7);
    if (!message) continue;
    Tally& of_kind = tally[kind];
    ++of_kind.made;
    of_kind.caught += message->empty() ? 0 : 1;
    std::printf("%s: %s: %s\n  %s\n", message->empty() ? "not caught" : "caught", mutant.breakage.c_str(),
                mutant.line.c_str(), message->empty() ? plan.c_str() : message->c_str());
  }
}

TEST(EmulatedMutants, AreCaught) {
  EmulatedDevice* const device = EmulatedDevice::get();
  if (device == nullptr) GTEST_SKIP() << "not started with the emulator (tests/emulated/emulator.py)";
  std::map<std::string, Tally> tally;
  const auto few = [&](const char* kind) { return tally[kind].made < kWanted; };
  const uint64_t first = testing::test_seed(20261126), last = first + 50 * kWanted;
  for (uint64_t seed = first; seed < last && std::any_of(std::begin(kBrokenKinds), std::end(kBrokenKinds), few);
       ++seed) {
    break_one(*device, seed, tally);
    if (HasFailure()) return;
  }
  Tally all;
  for (const auto& [kind, of_kind] : tally) {
    std::printf("%3d of %3d: %s\n", of_kind.caught, of_kind.made, kind.c_str());
    EXPECT_GT(of_kind.caught, 0) << kind;
    all.caught += of_kind.caught;
    all.made += of_kind.made;
  }
  EXPECT_GE(2 * all.caught, all.made) << "of " << all.made;
}

}  // namespace
}  // namespace wl
