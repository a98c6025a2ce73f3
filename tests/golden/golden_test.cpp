// Representative groups with everything that the compiler makes of them: graph, plan, kernel and C++ text, side by side
// in one file for each group. UPDATE_GOLDEN=1 rewrites the files, whose differences then show in review.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/phases.h"
#include "compiler/domain/stitch.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/golden/groups.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

const std::string kFolder = WARPLOOM_SOURCE_DIR "/tests/golden/kernels/";

std::string path_of(const testing::Golden& golden) {
  return cat(kFolder, golden.folder, golden.name, ".txt");
}

// Returns a made-up machine, since the golden files must not depend on the machine that runs the test.
Machine fixed_machine(std::string_view target) {
  Machine machine;
  machine.target = target_named(target).value();
  machine.threads = 2;
  machine.gcc = machine.clang = true;
  return machine;
}

std::string section(std::string_view title, const std::string& text) {
  return cat("== ", title, "\n", text, text.empty() || text.back() == '\n' ? "" : "\n");
}

// Returns the default schedule with the golden's own choices.
absl::StatusOr<Point> chosen_point(const Space& space, const testing::Golden& golden) {
  Point point = space.seeds[0];
  for (const auto& [name, value] : golden.choices) {
    set_value(space, point, axis_named(space.axes, name), value);
    if (point.empty()) return invalid("no axis ", name, " with the value ", value);
  }
  point = space.settled(std::move(point));
  if (!space.is_legal(point)) return invalid(space.text(point), " is not legal");
  return point;
}

absl::StatusOr<std::string> render_target(const testing::Golden& golden, const Graph& graph, std::string_view target) {
  const Machine machine = fixed_machine(target);
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze_group(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  WL_ASSIGN_OR_RETURN(const Point point, target == golden.target || golden.everywhere
                                             ? chosen_point(space, golden)
                                             : absl::StatusOr<Point>(space.seeds[0]));
  WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(graph, domain, space.schedule(point), machine));
  WL_ASSIGN_OR_RETURN(const Source source, emit(kernel, machine));
  return cat(section("plan", space.text(point)), section("kernel", print(kernel)),
             section(cat("source grid=", source.grid, " threads=", source.threads, " scratch=", source.scratch_bytes),
                     // The kernel's entry name contains a hash of the prelude, which goldens do not show, so the name
                     // is replaced.
                     absl::StrReplaceAll(source.text, {{source.entry, "ENTRY"}})));
}

// Returns the texts for the golden's own target with the golden's choices, then the texts for GPUs with waves of 32 and
// 64, which have the default choices unless the golden is to be recorded `everywhere`.
absl::StatusOr<std::string> render(const testing::Golden& golden) {
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(golden.graph));
  WL_ASSIGN_OR_RETURN(std::string text, render_target(golden, graph, golden.target));
  text = section("graph", print(graph)) + text;
  for (std::string_view target : {"cuda:sm_90a", "hip:gfx90a"}) {
    const auto more = render_target(golden, graph, target);
    if (!more.ok() && !absl::IsUnimplemented(more.status())) return more.status();
    text += more.ok() ? *more : section(target, std::string(more.status().message()));
  }
  return text;
}

class GoldenTest : public ::testing::TestWithParam<testing::Golden> {};

TEST_P(GoldenTest, IsAsRecorded) {
  const auto text = render(GetParam());
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string path = path_of(GetParam());
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << *text;
  ASSERT_EQ(*text, testing::file_text(path)) << "UPDATE_GOLDEN=1 rewrites " << path;
}

// Returns a kernel's text without its comments and without the lines that are then empty.
std::string without_comments(const std::string& text) {
  std::string code;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line.substr(0, line.find("//")));
    if (!absl::StripLeadingAsciiWhitespace(line).empty()) absl::StrAppend(&code, line, "\n");
  }
  return code;
}

// With a listing of the graph, a kernel's text has comments that name the nodes which its lines compute. Nothing else
// in the text differs.
TEST_P(GoldenTest, SaysWhatItComputes) {
  const Graph graph = parse(GetParam().graph).value();
  for (const std::string_view target : {std::string_view(GetParam().target), std::string_view("cuda:sm_90a")}) {
    const Machine machine = fixed_machine(target);
    const auto domain = analyze_group(graph, machine);
    const auto space = domain.ok() ? space_of(graph, *domain, machine) : domain.status();
    if (!space.ok()) continue;  // the test IsAsRecorded reports this error
    const Schedule schedule = space->schedule(space->seeds[0]);
    const Kernel kernel = lower(graph, *domain, schedule, machine).value();
    const NodeListing listing = listing_of(graph, *domain, schedule);
    const Source plain = emit(kernel, machine).value(), noted = emit(kernel, machine, {}, listing).value();
    EXPECT_EQ(noted.entry, plain.entry);
    EXPECT_EQ(without_comments(noted.text), without_comments(plain.text));
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
      EXPECT_NE(noted.text.find(cat("// %", id, " = ")), std::string::npos) << "the listing has all nodes";
      const Op op = graph.nodes[id].op;
      // In a stitched or packed group, comments name the nodes of the graphs of its stages or members, and not those
      // of the group's graph. No instruction computes a constant. No comments are expected for these nodes.
      if (listing.size() > 1 || op == Op::constant) continue;
      // An online sum adds exponentials without a value for each, so no comment names the nodes of exponentials.
      const bool online = schedule[kOnline] != 0 || schedule[kOnlineChunk] != 0;
      const bool computes = (class_of(op) == OpClass::kElementwise && !online) || class_of(op) == OpClass::kContract ||
                            is_reduction(graph, id);
      if (!computes) continue;
      EXPECT_NE(noted.text.find(cat(";  // %", id, " ", name_of(op), "\n")), std::string::npos)
          << target << " %" << id << "\n"
          << noted.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, GoldenTest, ::testing::ValuesIn(testing::kGoldens),
                         [](const ::testing::TestParamInfo<testing::Golden>& golden) { return golden.param.name; });

// Every instruction is in the text of at least one golden, so that the printing of every instruction is reviewed.
TEST(Goldens, ShowEveryInstruction) {
  std::string all;
  for (const testing::Golden& golden : testing::kGoldens) all += testing::file_text(path_of(golden));
  for (const InstrInfo& row : instrs()) {
    const std::string name(row.name);
    const bool shown = all.find(cat(" ", name, " ")) != std::string::npos ||
                       all.find(cat(" ", name, ".")) != std::string::npos ||
                       all.find(cat(" ", name, "\n")) != std::string::npos;
    EXPECT_TRUE(shown) << name;
  }
}

TEST(Goldens, HaveNoStrayFiles) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.is_directory()) continue;
    bool known = false;
    for (const testing::Golden& golden : testing::kGoldens) known = known || entry.path() == path_of(golden);
    EXPECT_TRUE(known) << entry.path();
  }
}

}  // namespace
}  // namespace wl
