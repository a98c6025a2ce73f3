#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/table.h"
#include "client/cli/top/view.h"
#include "client/program/json.h"

namespace wl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Job job_of_name(const std::string& name, JobState state, int64_t done, int64_t total) {
  Job job;
  job.name = name;
  job.state = state;
  job.label = "model.onnx";
  job.progress.phase = "search";
  job.progress.trials_done = done;
  job.progress.trials_total = total;
  return job;
}

Snapshot two_jobs(int64_t unix_ms, int64_t done) {
  Snapshot out;
  out.unix_ms = unix_ms;
  out.server = "unix:s";
  out.open = {job_of_name("jobs/2", JobState::kRunning, done, 100), job_of_name("jobs/1", JobState::kQueued, 0, 0)};
  out.ended = {job_of_name("jobs/0", JobState::kSucceeded, 0, 0)};
  WorkerSummary worker{"node7", 1, {}, true, unix_ms - 2000, 1, ""};
  worker.doing = {{.target = "cpu:avx2", .step = "check", .phase = 2 + kConfirmation, .candidates = 1, .seconds = 61}};
  out.workers = {worker};
  return out;
}

size_t widest(const std::vector<std::string>& lines) {
  size_t most = 0;
  for (const std::string& line : lines) most = std::max(most, width_of(line));
  return most;
}

TEST(Top, ShowsJobsWorkersAndRates) {
  const auto lines = top_lines(two_jobs(10'000, 25), {{"jobs/2", 3.5}}, {}, {.rows = 24, .columns = 120}, false);
  EXPECT_THAT(lines[1], HasSubstr("1 running, 1 queued  workers: 1 busy, 0 idle, 0 lost  trials/s: 3.50"));
  EXPECT_THAT(lines, Contains(testing::MatchesRegex("jobs/2 +search +\\[###\\.+\\]  25% +25/100 +3.50 .*model.onnx")));
  EXPECT_THAT(lines, Contains(testing::MatchesRegex("jobs/0 +succeeded .*model.onnx")));
  Snapshot used = two_jobs(10'000, 25);
  used.about.groups_found = 4;
  used.about.groups_missed = 1;
  used.about.saved_s = 340;
  EXPECT_EQ(top_lines(used, {}, {}, {.rows = 24, .columns = 120}, false)[2],
            "found in the store: 4 of 5 kernels of jobs (80 %), which saved 340 s of search");
  EXPECT_THAT(lines, Contains(testing::MatchesRegex("node7 +check, confirmation of 2, 1 candidate +1:01 +0:02")));
}

TEST(Top, LeavesOutWhatMattersLeastWhereThereIsNoRoom) {
  Snapshot snapshot = two_jobs(10'000, 25);
  for (int i = 0; i < 50; ++i) snapshot.open.push_back(job_of_name("jobs/9", JobState::kQueued, 0, 0));
  for (int i = 0; i < 50; ++i) snapshot.workers.push_back(snapshot.workers[0]);
  snapshot.open[0].label = std::string(500, 'x') + "\xc3\xa4";
  for (int rows = 1; rows < 60; ++rows) {
    for (int columns = 1; columns<140; columns += rows> 3 ? 7 : 1) {
      const auto lines = top_lines(snapshot, {}, {.message = "away", .since_s = 3}, {rows, columns}, false);
      EXPECT_LE(lines.size(), static_cast<size_t>(rows));
      EXPECT_LE(widest(lines), static_cast<size_t>(columns)) << rows << " rows";
    }
  }
  const auto lines = top_lines(snapshot, {}, {}, {.rows = 20, .columns = 24}, false);
  EXPECT_THAT(lines, Contains(StartsWith("jobs/2  ")));
  EXPECT_THAT(lines, Contains(StartsWith("node7  ")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("TARGET"))));
  EXPECT_THAT(lines, Contains("... and 43 more")) << "of 52 jobs";
}

TEST(Top, PrintsNoControlCharactersOfOthers) {
  Snapshot snapshot = two_jobs(10'000, 25);
  snapshot.open[0].label = "a\x1b[31mb\r\n\xff";
  snapshot.workers[0].name = "w\x07";
  for (const std::string& line :
       top_lines(snapshot, {}, {.message = "line one\nline two\x1b[2J", .since_s = 1}, {}, false))
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
}

TEST(Top, FindsRatesBetweenSnapshots) {
  RateMeter meter;
  Snapshot first = two_jobs(10'000, 20);
  first.open[0].progress.elapsed_s = 4;
  EXPECT_EQ(meter.add(first)["jobs/2"], 5) << "since it began";
  EXPECT_EQ(meter.add(two_jobs(12'000, 30))["jobs/2"], 5);
  EXPECT_EQ(meter.add(two_jobs(18'000, 44))["jobs/2"], 3) << "24 in 8 s";
  EXPECT_EQ(meter.add(two_jobs(21'000, 44))["jobs/2"], 14.0 / 9) << "what is ten seconds old counts no more";
  EXPECT_EQ(meter.add(two_jobs(20'000, 40))["jobs/2"], 0) << "the clock was set back";
  EXPECT_EQ(meter.add(two_jobs(21'000, 41))["jobs/2"], 1);
}

TEST(Top, WritesALineOfJson) {
  const std::string line = json_line(two_jobs(10'000, 25), {{"jobs/2", 3.5}});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["jobs"].size(), 3u);
  EXPECT_EQ(json["jobs"][0]["trials_per_s"], 3.5);
  EXPECT_EQ(json["workers"][0]["doing"][0]["purpose"], "confirmation of 2");
  EXPECT_EQ(Json::parse(json_line("unix:s", absl::UnavailableError("away")))["error"], "away");
}

}  // namespace
}  // namespace wl
