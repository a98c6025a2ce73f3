// Errors that the simulated GPU detects. Kernels are broken one at a time, as a compiler bug would break them (a
// missing barrier, a wrong bound, a missing mask, a shuffle over the wrong distance). The simulator must then report an
// error or give wrong values. Kernels are drawn from the spaces of random groups.
#include "tests/simulated/mutants.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "compiler/cover/stitching.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "runtime/runtime.h"
#include "tests/simulated/random_group.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/outputs.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/contract/shared_factor_products.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/stitched_groups.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

using testing::Mutant;

const char* const kMutantRows[] = {"cuda:sm_80", "hip:gfx90a", "hip:gfx1100"};

struct Case {
  std::vector<BufferSpec> buffers;
  std::vector<std::vector<Value>> expected;
  std::string plan;
  Source source;
};

// Returns "" if the kernel runs and its results are right, otherwise the error.
std::string judge(const Case& one, const Source& source, const std::string& path) {
  std::vector<Buffer> buffers;
  std::vector<void*> args;
  for (const BufferSpec& spec : one.buffers) {
    buffers.push_back(std::move(Buffer::create(spec.bytes(), 0).value()));
    void* data = buffers.back().data();
    args.push_back(data);
    if (spec.output)
      poison(spec.dtype, data, spec.elements());
    else
      fill_range(spec.fill, spec.dtype, 7, spec.stream, 0, spec.elements(), data);
  }
  auto work = Buffer::create(source.work_bytes, 0);
  std::memset(work->data(), 0, static_cast<size_t>(source.work_bytes));
  if (source.work_bytes > kCounterBytes)
    std::memset(static_cast<char*>(work->data()) + kCounterBytes, 0xff,
                static_cast<size_t>(source.work_bytes - kCounterBytes));
  args.push_back(work->data());
  if (std::string message = testing::run_simulated(path, source, args); !message.empty()) return message;
  size_t output = 0;
  for (size_t b = 0; b < one.buffers.size(); ++b) {
    if (!one.buffers[b].output) continue;
    const std::vector<Value>& expected = one.expected[output++];
    for (int64_t i = 0; i < one.buffers[b].elements(); ++i) {
      const std::string wrong =
          testing::difference(load_element(one.buffers[b].dtype, buffers[b].data(), i), expected[i]);
      if (!wrong.empty()) return cat("element ", i, ": ", wrong);
    }
  }
  return "";
}

// Judges a mutant in a child process, since it may access memory far outside its arguments. A mutant whose process is
// ended by a signal is wrong; any other end without a verdict is a fault of this test.
std::string judge_apart(const Case& one, const Source& source, const std::string& path) {
  int ends[2];
  WL_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  WL_CHECK(child >= 0, "no process");
  if (child == 0) {
    // The handlers of sanitizers would turn these signals into exit codes.
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(crash, SIG_DFL);
    const std::string message = judge(one, source, path).substr(0, 1000);  // a pipe takes so much without a reader
    _exit(write(ends[1], message.data(), message.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string message(1000, '\0');
  message.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], message.data(), message.size()))));
  close(ends[0]);
  int status = 0;
  WL_CHECK(waitpid(child, &status, 0) == child, "the child process is lost");
  WL_CHECK(status == 0 || WIFSIGNALED(status), cat("the child process gave no verdict: status ", status));
  return status == 0 ? message : cat("signal ", WTERMSIG(status));
}

// Returns the kernel that lowering makes of a group at a point of its space, with the group's expected values.
std::optional<Case> case_at(const Graph& graph, const Domain& domain, const Machine& machine, const Space& space,
                            const Point& point) {
  const auto kernel = lower(graph, domain, space.schedule(point), machine);
  if (!kernel.ok()) return std::nullopt;
  Case one{
      buffers_of(graph), testing::evaluate_outputs(graph, generated_inputs(graph, 7)).value(), space.text(point), {}};
  one.source = testing::simulated(*kernel, machine).value();
  return one;
}

// Draws `drawn` random schedules of a group, and returns the kernel of the last one that is `wanted`, with the group's
// expected values; nullopt if none is wanted.
std::optional<Case> case_of(const Graph& graph, const Machine& machine, uint64_t seed,
                            const std::function<bool(const Schedule&)>& wanted, int drawn = 1) {
  const auto domain = analyze(graph, machine);
  if (!domain.ok()) return std::nullopt;
  const Space space = space_of(graph, *domain, machine).value();
  std::vector<Point> points = testing::sample_points(space, drawn, seed);
  std::erase_if(points, [&](const Point& point) { return !wanted(space.schedule(point)); });
  if (points.empty()) return std::nullopt;
  return case_at(graph, *domain, machine, space, points.back());
}

// Returns the group with every reduction as an output as well. Ops that follow a reduction can hide its value: erf of a
// large sum is 1, whatever was left out of the sum.
Graph with_reductions_stored(Graph graph) {
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    const auto stores = [node](const Output& output) { return output.node == node; };
    if (class_of(graph.nodes[node].op) != OpClass::kReduce || std::ranges::any_of(graph.outputs, stores)) continue;
    graph.outputs.push_back({cat("reduced", node), node});
  }
  return graph;
}

// Returns the kernel of a random group; every fifth group is a contraction.
std::optional<Case> random_case(uint64_t seed) {
  const Machine machine = testing::machine_named(kMutantRows[seed % std::size(kMutantRows)]);
  const Graph graph = seed % 5 == 3 ? parse(testing::ContractionText(seed, 60'000).text()).value()
                                    : with_reductions_stored(testing::random_group(seed, 4000));
  return case_of(graph, machine, seed, [](const Schedule&) { return true; });
}

// Returns a kernel of a contraction with matrix instructions; seeds 2 and 3 of every four give asynchronous copies.
std::optional<Case> matrix_case(uint64_t seed) {
  const Graph graph = parse(testing::ContractionText(seed, 200'000, seed % 2 == 0 ? "bf16" : "f16").text()).value();
  return case_of(graph, testing::machine_named("cuda:sm_80"), seed, [seed](const Schedule& schedule) {
    return schedule[kMatrix] != kNoMatrix && schedule[kAsyncCopies] == static_cast<int64_t>(seed / 2 % 2);
  });
}

// Returns the kernel of a graph at the last of the points that points_of() chooses.
std::optional<Case> last_of(const std::string& text, const std::string& target,
                            const std::function<std::vector<Point>(const Space&, const Domain&)>& points_of) {
  const Graph graph = parse(text).value();
  const Machine machine = testing::machine_named(target);
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const std::vector<Point> points = points_of(space, domain);
  if (points.empty()) return std::nullopt;
  return case_at(graph, domain, machine, space, points.back());
}

// Returns a contraction whose factors stay in shared memory.
std::optional<Case> shared_factor_case(uint64_t seed) {
  return last_of(testing::shared_factor_product(seed), "cuda:sm_90a",
                 [seed](const Space& space, const Domain&) { return testing::shared_factor_points(space, 2, seed); });
}

// Returns whether a ring's slots are filled more than once. If every step had a slot of its own, breaking the phases
// would change nothing.
bool fills_slots_again(const Schedule& schedule, const Domain& domain) {
  return 2 * schedule[kStages] * schedule[kStepK] < extent_of(domain, domain.reduced) + schedule[kStepK];
}

// Returns a kernel of a contraction in which some waves only copy the factors.
std::optional<Case> alongside_case(uint64_t seed) {
  return last_of(testing::copied_product(seed), seed % 3 == 0 ? "cuda:sm_80" : "cuda:sm_90a",
                 [seed](const Space& space, const Domain& domain) {
                   return testing::points_with(space, 2, seed, [&domain](const Schedule& schedule) {
                     return schedule[kCopyingWaves] > 0 && fills_slots_again(schedule, domain);
                   });
                 });
}

// Returns a contraction whose last tiles are shared by several blocks.
std::optional<Case> rounds_case(uint64_t seed) {
  constexpr const char* kRows[] = {"cuda:sm_80", "hip:gfx942", "cuda:sm_90a"};
  return last_of(
      testing::many_deep_tiles(seed), kRows[seed % std::size(kRows)],
      [seed](const Space& space, const Domain&) { return testing::last_round_points(space, 1 + seed % 2, seed); });
}

// Returns a contraction whose factors are copied as boxes of matrices (TMA).
std::optional<Case> boxes_case(uint64_t seed) {
  return last_of(testing::product_of_boxes(seed), "cuda:sm_90a", [seed](const Space& space, const Domain& domain) {
    std::vector<Point> points = testing::box_points(space, 4, seed);
    std::erase_if(points, [&](const Point& point) { return !fills_slots_again(space.schedule(point), domain); });
    return points;
  });
}

// Returns attention whose values stay in registers. The test does not use the kind "identity" on it: a wrong identity
// changes only rows that see no key.
std::optional<Case> resident_case(uint64_t seed) {
  const Graph graph = testing::drawn_resident_attention(seed);
  constexpr const char* kRows[] = {"cuda:sm_80", "hip:gfx942", "cuda:sm_90a"};
  const Machine machine = testing::machine_named(kRows[seed % std::size(kRows)]);
  const Domain domain = analyze_group(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const std::vector<Point> points = testing::with_resident_values(space, space.seeds);
  if (points.empty()) return std::nullopt;
  return case_at(graph, domain, machine, space, points[seed % points.size()]);
}

// Returns a contraction with matrix instructions whose tiles have several runs or, for every third seed, whose factors
// are bytes. The test does not use the kind "slot" on it: the pattern of that kind also matches the taps of windows,
// whose order does not change the result.
std::optional<Case> runs_case(uint64_t seed) {
  const bool bytes = seed % 3 == 0;
  const Graph graph = parse(bytes ? testing::byte_product(seed) : testing::product_in_runs(seed)).value();
  const Machine machine = testing::machine_named(bytes || seed % 2 == 0 ? "cuda:sm_80" : "hip:gfx950");
  const Domain domain = analyze(graph, machine).value();
  if (domain.cls != LoopClass::kContract) return std::nullopt;
  const Space space = space_of(graph, domain, machine).value();
  const std::vector<Point> points =
      bytes ? testing::matrix_points(space, 2, seed) : testing::points_in_runs(space, 2, seed);
  if (points.empty() || space.schedule(points.back())[kMatrix] == kNoMatrix) return std::nullopt;
  return case_at(graph, domain, machine, space, points.back());
}

// Returns a contraction without matrix instructions but with asynchronous copies. Odd seeds also give two stages in
// registers, so reads from shared memory into registers run ahead as well.
std::optional<Case> pipelined_case(uint64_t seed) {
  const Graph graph = parse(testing::ContractionText(seed, 60'000, "f32").text()).value();
  const auto wanted = [seed](const Schedule& schedule) {
    return schedule[kAsyncCopies] != 0 && schedule[kRegisterStages] == 1 + static_cast<int64_t>(seed % 2);
  };
  return case_of(graph, testing::machine_named("cuda:sm_80"), seed, wanted, 20);
}

// Breaks `wanted` kernels, each once by every given kind that applies to it, and expects that at least 95 % of the
// mutants are caught.
void expect_caught(uint64_t first, size_t wanted, const std::set<std::string>& kinds,
                   const std::function<std::optional<Case>(uint64_t)>& make) {
  std::vector<Case> cases;
  std::vector<Mutant> chosen;
  for (uint64_t seed = first; cases.size() < wanted; ++seed) {
    std::optional<Case> one = make(seed);
    if (!one) continue;
    std::vector<Mutant> all;
    testing::break_kernel(static_cast<int>(cases.size()), one->source, all);
    std::erase_if(all, [&](const Mutant& mutant) { return !kinds.contains(mutant.kind); });
    if (all.empty()) continue;  // the kernel has no tails, reductions or barriers that could be broken
    cases.push_back(*std::move(one));
    std::map<std::string, std::vector<Mutant*>> by_kind;
    for (Mutant& mutant : all) by_kind[mutant.kind].push_back(&mutant);
    for (auto& [kind, mutants] : by_kind) chosen.push_back(std::move(*mutants[seed * 7919 % mutants.size()]));
  }
  std::vector<Candidate> candidates;
  for (Mutant& one : chosen) {
    Mutant* const mutant = &one;
    Candidate& candidate = candidates.emplace_back();
    candidate.trial = static_cast<int64_t>(candidates.size());
    // Mutants of one kernel are in one translation unit, so each mutant needs a name of its own.
    const std::string name = cat(mutant->source.entry, "_", candidates.size());
    std::string& text = mutant->source.text;
    text.replace(text.find(mutant->source.entry), mutant->source.entry.size(), name);
    mutant->source.entry = name;
    candidate.source = mutant->source;
  }
  const Scratch scratch;
  CompileOptions options;
  options.folder = scratch.folder();
  options.unit = 24;
  options.deadline_ns = 300'000'000'000;
  const auto compiled = compile_cpu(candidates, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  // for each breakage: the number of its mutants that were caught, and the number of all its mutants
  std::map<std::string, std::pair<int, int>> tally;
  int caught = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Compiled& one = (*compiled)[i];
    ASSERT_EQ(one.outcome, Outcome::kCorrect) << one.message << chosen[i].source.text;
    const std::string message = judge_apart(cases[chosen[i].kernel], chosen[i].source, one.object);
    auto& [hit, total] = tally[chosen[i].breakage];
    ++total;
    if (!message.empty())
      ++hit, ++caught;
    else
      std::printf("not caught: %s: %s\n  %s\n%s", chosen[i].breakage.c_str(), chosen[i].line.c_str(),
                  cases[chosen[i].kernel].plan.c_str(), cases[chosen[i].kernel].source.text.c_str());
  }
  for (const auto& [name, count] : tally) std::printf("%3d of %3d: %s\n", count.first, count.second, name.c_str());
  std::printf("%d of %zu mutants of %zu kernels caught\n", caught, chosen.size(), cases.size());
  EXPECT_GE(caught, static_cast<int>(0.95 * static_cast<double>(chosen.size()))) << "of " << chosen.size();
}

// The kinds "slot" and "round" are left out, because these breakages may change nothing in random groups: a changed
// slot number changes all accesses to the slot, and a block's last iteration may have no row. The tests below use them.
TEST(Simulated, CatchesBrokenKernels) {
  expect_caught(testing::test_seed(20260801), static_cast<size_t>(testing::scaled(20)),
                {"barrier", "shuffle", "bound", "mask", "async", "pass", "last", "meet", "identity"}, random_case);
}

TEST(Simulated, CatchesBrokenMatrixKernels) {
  expect_caught(testing::test_seed(20261203), static_cast<size_t>(testing::scaled(12)),
                {"barrier", "async", "matrix", "sums", "words"}, matrix_case);
}

TEST(Simulated, CatchesBrokenFactorsInMemory) {
  expect_caught(testing::test_seed(20261127), static_cast<size_t>(testing::scaled(10)),
                {"barrier", "async", "slot", "shared factor", "swizzle"}, shared_factor_case);
}

TEST(Simulated, CatchesBrokenValuesInRegisters) {
  expect_caught(testing::test_seed(20261130), static_cast<size_t>(testing::scaled(10)),
                {"barrier", "async", "slot", "shuffle", "matrix", "sums", "pack", "words", "shared factor"},
                resident_case);
}

TEST(Simulated, CatchesBrokenRunsAndBytes) {
  expect_caught(testing::test_seed(20261205), static_cast<size_t>(testing::scaled(12)),
                {"barrier", "async", "bound", "mask", "matrix", "sums", "words"}, runs_case);
}

TEST(Simulated, CatchesBrokenPhases) {
  expect_caught(testing::test_seed(20261128), static_cast<size_t>(testing::scaled(14)),
                {"barrier", "phase", "shared factor", "swizzle"}, alongside_case);
}

TEST(Simulated, CatchesBrokenBoxes) {
  expect_caught(testing::test_seed(20261213), static_cast<size_t>(testing::scaled(10)),
                {"barrier", "phase", "box", "shared factor", "swizzle"}, boxes_case);
}

// The kind "barrier" is left out: a ring that starts with its first slot again in every round needs no barrier between
// rounds.
TEST(Simulated, CatchesBrokenRounds) {
  expect_caught(testing::test_seed(20261210), static_cast<size_t>(testing::scaled(10)), {"phase", "last", "round"},
                rounds_case);
}

TEST(Simulated, CatchesBrokenPipelines) {
  expect_caught(testing::test_seed(20261126), static_cast<size_t>(testing::scaled(16)), {"barrier", "async", "slot"},
                pipelined_case);
}

}  // namespace
}  // namespace wl
