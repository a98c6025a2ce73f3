// What the simulated GPU catches: kernels are broken one at a time, as a compiler bug would break them (a barrier less,
// a smaller bound, a mask that is not there, a shuffle over the wrong distance), and must then either be reported by
// the simulator or give wrong values. Kernels are drawn from the spaces of random groups.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "compiler/emit/emit.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "runtime/runtime.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/lower/groups.h"
#include "worker/drivers/cpu.h"

namespace wl {
namespace {

struct Breakage {
  const char* name;
  std::regex what;
  const char* with;  // "$1": the first group
};

const std::vector<Breakage>& breakages() {
  static const auto* const kAll = new std::vector<Breakage>{
      {"a barrier is missing", std::regex("wl_barrier\\(\\);"), ";"},
      {"a shuffle has half its distance", std::regex("wl_shuffle_xor<(16|8|4|2)>"), "wl_shuffle_xor<$1 / 2>"},
      {"a shuffle has twice its distance", std::regex("wl_shuffle_xor<(1|2|4|8)>"), "wl_shuffle_xor<$1 * 2>"},
      {"a tail is shorter", std::regex("wl_left\\((\\d+)L - "), "wl_left($1L - WL_LANES - "},
      {"a store's tail is longer", std::regex("(wl_store_n.*wl_left\\()(\\d+)L - "), "$1$2L + WL_LANES - "},
      {"a store has no mask", std::regex("wl_store_n<(\\d)>(\\(.*), wl_left\\(.*\\)\\);"), "wl_store<$1>$2);"},
      {"a fold has no mask", std::regex("wl_keep\\(([a-z0-9_]+), .*>\\(\\)\\)\\);"), "$1);"},
      {"every thread stores what one should", std::regex("\\bplace == 0\\b|\\(place & \\d+\\) == 0"), "true"},
      {"rows beyond the last are stored", std::regex("if \\(wl_within\\([^)]*, \\d+L\\)\\)"), "if (true)"},
      {"a row less", std::regex("wl_within\\(([^)]*), (\\d+)L\\)"), "wl_within($1, $2L - 1)"},
      {"not clamped to the last row", std::regex("wl_lmin\\((.*), (\\d+)L\\)\\)"), "$1)"},
      {"an identity is another", std::regex("-__builtin_inff\\(\\)"), "3e38f"},
  };
  return *kAll;
}

struct Mutant {
  int kernel = 0;
  std::string breakage, line;
  Source source;
};

struct Case {
  std::vector<BufferSpec> buffers;
  std::vector<std::vector<Value>> expected;
  std::string plan;
  Source source;
};

// What the lines that one instruction prints, one for each register, have in common.
std::string instruction_of(const std::string& line) {
  static const std::regex kTile("t\\d+_"), kNumber("\\d+");
  std::smatch tile;
  const std::string first = std::regex_search(line, tile, kTile) ? tile.str() : "";
  return cat(first, " ", std::regex_replace(line, kNumber, "#"));
}

// Every instruction that a breakage fits, broken wherever it is printed; shuffles and barriers one by one.
void break_kernel(int number, const Source& source, std::vector<Mutant>& mutants) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < source.text.size();) {
    const size_t end = source.text.find('\n', at);
    lines.push_back(source.text.substr(at, end - at));
    at = end + 1;
  }
  for (const Breakage& breakage : breakages()) {
    std::set<std::string> seen;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (std::regex_replace(lines[i], breakage.what, breakage.with) == lines[i]) continue;
      const bool alone =
          lines[i].find("wl_shuffle") != std::string::npos || lines[i].find("wl_barrier") != std::string::npos;
      const std::string instruction = instruction_of(lines[i]);
      if (!alone && !seen.insert(instruction).second) continue;
      Mutant mutant{number, breakage.name, lines[i], source};
      mutant.source.text.clear();
      for (size_t j = 0; j < lines.size(); ++j) {
        const bool same = j == i || (!alone && instruction_of(lines[j]) == instruction);
        append(&mutant.source.text, same ? std::regex_replace(lines[j], breakage.what, breakage.with) : lines[j], "\n");
      }
      mutants.push_back(std::move(mutant));
    }
  }
}

// "" when the kernel runs and is right; else what is wrong with it.
std::string judge(const Case& one, const Source& source, const std::string& path) {
  const auto object = SharedObject::open(path);
  if (!object.ok()) return object.status().ToString();
  const auto find = [&](const char* suffix) { return object->symbol(source.entry + suffix).value(); };
  *static_cast<int*>(find("_quiet")) = 1;
  const auto report = reinterpret_cast<const char* (*)()>(find("_report"));
  const auto run = reinterpret_cast<void (*)(long, void* const*, char*)>(find(""));
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
  auto scratch = Buffer::create(std::max<int64_t>(4096, source.scratch_bytes), 0);
  for (long block = 0; block < source.grid; ++block) run(block, args.data(), static_cast<char*>(scratch->data()));
  if (const std::string message = report(); !message.empty()) return message;
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

TEST(Simulated, CatchesBrokenKernels) {
  const uint64_t seed = testing::test_seed(11);
  std::vector<Case> cases;
  std::vector<Mutant> all;
  for (const char* target : {"sim:cuda", "sim:hip"}) {
    const Machine machine = testing::machine_named(target);
    for (const char* text : testing::kGroups) {
      const Graph graph = parse(text).value();
      const Domain domain = analyze(graph, machine).value();
      const Space space = space_of(graph, domain, machine).value();
      std::vector<Query> queries;
      for (const Output& output : graph.outputs) {
        queries.push_back({output.node, {}});
        for (int64_t i = 0; i < elements(graph.nodes[output.node].shape); ++i) queries.back().indices.push_back(i);
      }
      const auto expected = evaluate(graph, generated_inputs(graph, 7), queries).value();
      for (const Point& point : testing::sample_points(space, 6, seed + cases.size())) {
        const auto kernel = lower(graph, domain, space.schedule(point), machine);
        if (!kernel.ok()) continue;
        const auto source = emit(*kernel, machine);
        if (!source.ok()) continue;
        cases.push_back({buffers_of(graph), expected, space.text(point), *source});
        break_kernel(static_cast<int>(cases.size()) - 1, *source, all);
      }
    }
  }
  // A share of every breakage, whatever the kernels are full of.
  std::map<std::string, std::vector<Mutant*>> by_breakage;
  for (Mutant& mutant : all) by_breakage[mutant.breakage].push_back(&mutant);
  std::vector<Mutant*> chosen;
  const size_t share = static_cast<size_t>(testing::scaled(8));
  for (auto& [name, mutants] : by_breakage) {
    for (size_t i = 0; i < std::min(share, mutants.size()); ++i)
      chosen.push_back(mutants[i * mutants.size() / std::min(share, mutants.size())]);
  }
  std::vector<Candidate> candidates;
  for (Mutant* mutant : chosen) {
    Candidate& candidate = candidates.emplace_back();
    candidate.trial = static_cast<int64_t>(candidates.size());
    // Mutants of one kernel share a translation unit: each needs a name of its own.
    const std::string name = cat(mutant->source.entry, "_", candidates.size());
    std::string& text = mutant->source.text;
    text.replace(text.find(mutant->source.entry), mutant->source.entry.size(), name);
    mutant->source.entry = name;
    candidate.source = mutant->source;
  }
  const std::string folder = cat(::testing::TempDir(), "/mutants.", getpid());
  std::filesystem::create_directories(folder);
  CompileOptions options;
  options.folder = folder;
  options.unit = 24;
  options.deadline_ns = 300'000'000'000;
  const auto compiled = compile_cpu(candidates, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::map<std::string, std::pair<int, int>> tally;  // caught, of
  int caught = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Compiled& one = (*compiled)[i];
    ASSERT_EQ(one.outcome, Outcome::kCorrect) << one.message << chosen[i]->source.text;
    const std::string message = judge(cases[chosen[i]->kernel], chosen[i]->source, one.object);
    auto& [hit, total] = tally[chosen[i]->breakage];
    ++total;
    if (!message.empty())
      ++hit, ++caught;
    else
      std::printf("not caught: %s: %s\n  %s\n", chosen[i]->breakage.c_str(), chosen[i]->line.c_str(),
                  cases[chosen[i]->kernel].plan.c_str());
  }
  for (const auto& [name, count] : tally) std::printf("%3d of %3d: %s\n", count.first, count.second, name.c_str());
  EXPECT_GE(chosen.size(), 90u);
  EXPECT_GE(caught, static_cast<int>(0.95 * static_cast<double>(chosen.size()))) << "of " << chosen.size();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace wl
