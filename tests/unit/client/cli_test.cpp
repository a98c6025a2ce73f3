#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "client/cli/exit_code.h"
#include "client/cli/line/parse.h"
#include "client/cli/progress.h"
#include "client/cli/table.h"
#include "client/remote/report.h"
#include "nlohmann/json.hpp"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::variant<Options, int> parse_line(std::vector<const char*> words) {
  words.insert(words.begin(), "warploom");
  return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(Options, ReadsATuneLine) {
  auto parsed = parse_line({"tune", "m.onnx", "--trials", "8", "--budget", "2m", "--out", "d", "--bind", "batch=8",
                            "--bind", "seq=128,256", "--measure", "cold", "--seed", "7", "--json", "-"});
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  const Options& options = std::get<Options>(parsed);
  EXPECT_EQ(options.command, "tune");
  const GraphOptions& graph = options.tune.graph;
  EXPECT_EQ(graph.file, "m.onnx");
  EXPECT_EQ(graph.tune.trials, 8);
  EXPECT_EQ(graph.tune.budget_s, 120);
  EXPECT_EQ(graph.tune.seed, 7u);
  EXPECT_TRUE(graph.tune.cold);
  EXPECT_EQ(graph.bind, (BindValues{{"batch", {8}}, {"seq", {128, 256}}}));
  EXPECT_EQ(options.tune.result.out, "d");
  EXPECT_EQ(options.tune.result.report.json, "-");
}

TEST(Options, RepeatedOptionsDoNotSwallowThePositional) {
  auto parsed = parse_line({"run", "--input", "x=a.npy", "--input", "y=b=c.npy", "bundle", "--check"});
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  const Options& options = std::get<Options>(parsed);
  EXPECT_EQ(options.run.graph.file, "bundle");
  EXPECT_TRUE(options.run.run.check);
  EXPECT_EQ(options.run.run.values.inputs.at("y"), "b=c.npy");
}

TEST(Options, MistakesAreExitCodeOne) {
  for (const std::vector<const char*>& words : {std::vector<const char*>{},
                                                {"fry"},
                                                {"tune"},
                                                {"tune", "m.onnx", "--trials", "-3"},
                                                {"tune", "m.onnx", "--bnid", "a=1"},
                                                {"tune", "m.onnx", "--allow-fp8"},
                                                {"tune", "m.onnx", "--bind", "a"},
                                                {"tune", "m.onnx", "--bind", "a=1,"},
                                                {"tune", "m.onnx", "--bind", "a=1,1"},
                                                {"tune", "m.onnx", "--budget", "soon"},
                                                {"tune", "m.onnx", "--effort", "heroic"},
                                                {"tune", "m.onnx", "--server", "unix:/a", "--store", "s"},
                                                {"tune", "m.onnx", "--require-cached", "--retune"},
                                                {"drain"},
                                                {"undrain", "--store", "s"}}) {
    testing::internal::CaptureStderr();
    auto parsed = parse_line(words);
    std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << said;
    EXPECT_EQ(std::get<int>(parsed), kExitUsage);
    EXPECT_TRUE(said.starts_with("warploom: error: ")) << said;
  }
}

TEST(Options, EveryCommandHasAnExample) {
  for (const char* name : {"tune", "run", "get", "inspect", "jobs", "watch", "cancel", "workers", "records", "drain",
                           "undrain", "status", "targets"}) {
    testing::internal::CaptureStdout();
    auto parsed = parse_line({name, "--help"});
    std::string said = testing::internal::GetCapturedStdout();
    ASSERT_TRUE(std::holds_alternative<int>(parsed));
    EXPECT_EQ(std::get<int>(parsed), kExitDone);
    EXPECT_NE(said.find(std::string("Example:\n  warploom ") + name), std::string::npos) << said;
  }
}

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(exit_code_of(absl::OkStatus()), 0);
  EXPECT_EQ(exit_code_of(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(exit_code_of(absl::UnimplementedError("")), 2);
  EXPECT_EQ(exit_code_of(absl::DataLossError("")), 2);
  EXPECT_EQ(exit_code_of(absl::NotFoundError("")), 3);
  EXPECT_EQ(exit_code_of(absl::UnavailableError("")), 4);
  EXPECT_EQ(exit_code_of(absl::FailedPreconditionError("")), 5);
  EXPECT_EQ(exit_code_of(absl::CancelledError("")), 6);
  EXPECT_EQ(exit_code_of(absl::InternalError("")), 7);
  EXPECT_EQ(exit_code_of(absl::ResourceExhaustedError("")), 7);
}

TEST(Table, AlignsColumnsAndCountsCharacters) {
  Table table({{"a"}, {"n", true}}, false);
  table.add({"\xc3\xa9t\xc3\xa9", "1"});
  table.rule();
  table.add({"x", "1000"});
  EXPECT_EQ(table.text(), "a       n\n\xc3\xa9t\xc3\xa9     1\n---------\nx    1000\n");
}

Job sample_job() {
  Job job;
  job.name = "jobs/1";
  job.state = JobState::kSucceeded;
  GroupProgress seen;
  seen.key = "k";
  seen.name = "g0";
  seen.cached = true;
  job.progress.groups = {seen};
  job.progress.trials_done = 4;
  job.progress.elapsed_s = 1.5;
  JobResult result;
  GroupResult group;
  group.key = "k";
  group.count = 2;
  group.source = "searched";
  group.kernels_default = 3;
  group.default_ns = 300;
  group.best_ns = 100;
  group.bytes = 1000;
  group.graph = "graph {\n  %0 = input \"x\" : f32[4]\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n";
  result.groups = {group};
  result.device.target = "cpu:avx2";
  job.result = result;
  return job;
}

TEST(Report, HasTheDocumentedKeys) {
  auto json = nlohmann::json::parse(report_json(sample_job(), {}, "m.onnx", false, false));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["input"]["file"], "m.onnx");
  EXPECT_EQ(json["groups"][0]["source"], "cached");
  for (const char* key : {"key", "count", "ops", "kernels_default", "kernels", "bytes_default", "bytes", "flops",
                          "default_ns", "best_ns", "samples_ns", "trials", "max_error", "bound", "plan"}) {
    EXPECT_TRUE(json["groups"][0].contains(key)) << key;
  }
  for (const char* outcome : kOutcomeNames) EXPECT_TRUE(json["groups"][0]["trials"].contains(outcome)) << outcome;
  EXPECT_EQ(json["totals"]["wall_s"]["total"], 1.5);
}

TEST(Report, TheStableOneSaysNothingOfThisRun) {
  Job job = sample_job(), other = sample_job();
  other.name = "jobs/2";
  other.cached = true;
  other.progress = {};
  other.state = JobState::kCancelled;
  EXPECT_EQ(report_json(job, {{"n", 64}}, "a.onnx", true, false),
            report_json(other, {{"n", 64}}, "b.onnx", true, false));
  EXPECT_NE(report_json(job, {{"n", 64}}, "a.onnx", false, false),
            report_json(other, {{"n", 64}}, "b.onnx", false, false));
}

TEST(Progress, FitsTheTerminal) {
  JobProgress progress;
  for (int i = 0; i < 30; ++i) {
    GroupProgress group;
    group.name = "group";
    group.done = i < 25;
    progress.groups.push_back(group);
  }
  progress.phase = "search";
  progress.workers = 1;
  auto lines = progress_lines(progress, 10, 60);
  EXPECT_LE(lines.size(), 10u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 60u);
  EXPECT_NE(lines[lines.size() - 2].find("22 more"), std::string::npos) << lines[lines.size() - 2];
}

std::string printed(std::vector<const char*> words) {
  testing::internal::CaptureStdout();
  const auto parsed = parse_line(std::move(words));
  EXPECT_EQ(std::get<int>(parsed), kExitDone);
  return testing::internal::GetCapturedStdout();
}

TEST(Completion, IsMadeOfTheCommandsThemselves) {
  const std::string bash = printed({"completion", "bash"}), zsh = printed({"completion", "zsh"}),
                    fish = printed({"completion", "fish"});
  EXPECT_THAT(bash, HasSubstr("'tune --progress') COMPREPLY=($(compgen -W 'auto plain json' -- \"$word\")) ;;"));
  EXPECT_THAT(bash, HasSubstr("'run --weights') COMPREPLY=($(compgen -f -- \"$word\")) ;;"));
  EXPECT_THAT(bash, HasSubstr("'tune --trials') COMPREPLY=() ;;"));
  EXPECT_THAT(zsh, HasSubstr("#compdef warploom\n"));
  EXPECT_THAT(zsh, HasSubstr(bash));
  EXPECT_THAT(fish,
              HasSubstr("complete -c warploom -n '__fish_seen_subcommand_from tune' -l measure -x -a 'cold warm'"));
  EXPECT_EQ(std::get<int>(parse_line({"completion", "csh"})), kExitUsage);
}

TEST(Manual, IsMadeOfTheCommandsThemselves) {
  const std::string all = printed({"manual"}), tune = printed({"manual", "tune"});
  EXPECT_THAT(all, HasSubstr(".TH WARPLOOM 1"));
  EXPECT_THAT(all, HasSubstr(".TP\n\\fBtune\\fR\ntune a graph: .onnx, or .graph canonical text\n"));
  EXPECT_THAT(all, HasSubstr("Exit codes: 0 done"));
  EXPECT_THAT(tune, HasSubstr("\\fBwarploom tune\\fR [OPTIONS] \\fIFILE\\fR"));
  EXPECT_THAT(tune, HasSubstr(".TP\n\\fB\\-\\-trials\\fR \\fIN\\fR\n"));
  EXPECT_THAT(tune, HasSubstr("One of cold, warm.\n"));
  // No text of the manual page is read as a roff macro: each line that begins with a dot is one of these macros.
  std::istringstream lines(tune);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(".")) continue;
    EXPECT_THAT(line, MatchesRegex("\\.(TH|SH|TP|br|nf|fi|BR)( .*)?"));
  }
  EXPECT_EQ(std::get<int>(parse_line({"manual", "tuna"})), kExitUsage);
}

TEST(Progress, OfProgramsIsALineOfJson) {
  Job job;
  job.name = "jobs/7";
  job.progress.phase = "search";
  job.progress.groups.resize(2);
  job.progress.groups[0].name = "softmax \"a\"";
  job.progress.groups[0].best_ns = 10;
  job.progress.groups[1].is_default = true;
  const std::string line = progress_json(job);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["job"], "jobs/7");
  EXPECT_EQ(json["phase"], "search");
  ASSERT_EQ(json["groups"].size(), 1u) << "kernels that are measured for comparison are no groups of the job";
  EXPECT_EQ(json["groups"][0]["what"], "softmax \"a\"");
  EXPECT_EQ(json["groups"][0]["best_ns"], 10);
}

}  // namespace
}  // namespace wl
