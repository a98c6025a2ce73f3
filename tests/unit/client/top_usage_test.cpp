// The screen of `warploom top` with what programs run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/table.h"
#include "client/cli/top/view.h"
#include "client/program/json.h"

namespace wl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

Snapshot used_by(int teams, int kernels, int missed) {
  Snapshot out;
  out.unix_ms = out.usage_unix_ms = 10'000;
  out.server = "unix:s";
  Usage& usage = out.usage.emplace();
  usage.days = 7;
  usage.total = {.ns = {9 * 3.6e12, 0, 3.6e12}, .calls = {900, 0, 100}};
  usage.saved_ns = 2 * 3.6e12;
  usage.cost_s = 90;
  usage.trials = 180;
  usage.kernels_in_all = kernels;
  usage.missed_in_all = missed;
  for (int i = 0; i < teams; ++i)
    usage.teams.push_back({.team = cat("team", i), .sum = usage.total, .saved_ns = 1e9, .cost_s = 2, .missed = 3});
  for (int i = 0; i < kernels; ++i) {
    KernelUsage& kernel = usage.kernels.emplace_back();
    kernel.key = cat(std::string(60, 'a'), 1000 + i);
    kernel.name = "exp f32[8]";
    kernel.kind = UseKind::kTuned;
    kernel.saving_per_day = 1.5e9;
    kernel.ns_per_day = 6e10;
    kernel.best_ns = 2000;
    kernel.default_ns = 4000;
    kernel.trials = 32;
    kernel.calls_per_day = 700;
    kernel.team = "vision";
    kernel.device = "cpu0";
    kernel.stopped = i == 1 ? "it is at its bound" : "";
  }
  for (int i = 0; i < missed; ++i) {
    MissedUsage& one = usage.missed.emplace_back();
    one.model = "bert\x1b[31m.onnx";
    one.target = "cpu";
    one.count = 5;
    one.job = "jobs/7";
    one.why = "nothing like it";
  }
  return out;
}

TEST(TopUsage, ShowsSumsTeamsKernelsAndWhatWasMissed) {
  const auto lines = usage_lines(used_by(1, 2, 1), {}, {.rows = 40, .columns = 160}, false);
  EXPECT_THAT(lines,
              Contains("programs, last 7 days: 10.0 h in 1000 launches: tuned 90 %, predicted 0 %, default 10 %"));
  EXPECT_THAT(lines, Contains("tuning has saved 2.0 h; searches took 1.5 min of workers for 180 candidates"));
  EXPECT_THAT(lines, Contains(MatchesRegex("team0 +10.0 h +1000 +90 % +0 % +10 % +1.0 s +2.0 s +3")));
  EXPECT_THAT(
      lines,
      Contains(MatchesRegex("a{12} +1.5 s +1.0 min +700 +tuned +2.0 us +4.0 us +- +32 +vision +cpu0 +exp f32.8.")));
  EXPECT_THAT(lines, Contains(MatchesRegex("a{12} .*not searched: it is at its bound")));
  EXPECT_THAT(lines, Contains(MatchesRegex("bert.*onnx +5 +jobs/7 +cpu +nothing like it")));
}

TEST(TopUsage, SaysWhenThereIsNothing) {
  EXPECT_THAT(usage_lines(used_by(0, 0, 0), {}, {}, false), Contains(HasSubstr("no program has said")));
  Snapshot older;
  EXPECT_THAT(usage_lines(older, {}, {}, false), Contains("asking what programs run"));
  older.usage_unix_ms = 1;
  EXPECT_THAT(usage_lines(older, {}, {}, false), Contains(HasSubstr("of a version that does not say")));
}

TEST(TopUsage, FitsEveryTerminal) {
  for (int rows = 1; rows < 60; ++rows)
    for (int columns = 1; columns<140; columns += rows> 3 ? 7 : 1) {
      const auto lines = usage_lines(used_by(40, 50, 50), {.message = "away", .since_s = 3}, {rows, columns}, false);
      EXPECT_LE(lines.size(), static_cast<size_t>(rows));
      for (const std::string& line : lines) {
        EXPECT_LE(width_of(line), static_cast<size_t>(columns)) << rows << " rows";
        EXPECT_THAT(line, Not(HasSubstr("\x1b")));
      }
    }
  EXPECT_THAT(usage_lines(used_by(40, 50, 50), {}, {.rows = 30, .columns = 100}, false),
              Contains(HasSubstr("... and ")));
}

TEST(TopUsage, IsInTheLineOfJson) {
  const Json json = Json::parse(json_line(used_by(1, 2, 1), {}))["usage"];
  EXPECT_EQ(json["time"]["tuned"]["s"], 9 * 3600.0);
  EXPECT_EQ(json["teams"][0]["team"], "team0");
  EXPECT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["kernels"][1]["stopped"], "it is at its bound");
  EXPECT_EQ(json["missed"][0]["count"], 5);
  EXPECT_TRUE(Json::parse(json_line(Snapshot(), {}))["usage"].is_null());
}

}  // namespace
}  // namespace wl
