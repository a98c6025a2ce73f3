#include "client/cli/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/page/charts.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json report_of(const std::string& what) {
  const Json group = {{"what", what},         {"count", 2},        {"kernels_default", 3}, {"kernels", 1},
                      {"default_ns", 4e6},    {"best_ns", 1e6},    {"flops", 2e8},         {"bytes", 2e7},
                      {"bytes_default", 3e6}, {"max_error", 1e-7}, {"bound", 1e-6},        {"plan", "plan 2 vector=8"}};
  return {
      {"groups", Json::array({group})},
      {"covers",
       Json::array({{{"name", "greedy"}, {"kernels", 1}, {"least_ns", 9e5}, {"chosen", true}, {"why", "least time"}}})},
      {"totals", {{"default_ns", 8e6}, {"best_ns", 2e6}, {"kernels_default", 6}, {"kernels", 2}, {"trials", 40}}},
      {"target", {{"name", "cpu:avx2"}, {"device", "a machine"}}},
      {"environment", {{"compiler", "gcc 12"}, {"host", {{"threads", 2}}}}}};
}

JobProgress progress_of(int64_t trials, double best_ns) {
  JobProgress progress;
  GroupProgress& group = progress.groups.emplace_back();
  group.key = "k", group.name = "softmax", group.trials_done = trials, group.best_ns = best_ns;
  return progress;
}

TEST(Page, ShowsTimesCurvesLimitsAndTheGraph) {
  GroupCurves curves;
  curves.add(progress_of(0, 0));
  curves.add(progress_of(8, 500));
  curves.add(progress_of(16, 500));
  curves.add(progress_of(24, 250));
  curves.add(progress_of(24, 260));  // the second measurement has as many trials as the first one, so it adds no point
  ASSERT_EQ(curves.all().size(), 1u);
  EXPECT_EQ(curves.all()[0].best, (std::vector<std::pair<int64_t, double>>{{8, 500}, {24, 250}}));
  const std::string page = page_html({"bert.onnx",
                                      report_of("softmax"),
                                      curves.all(),
                                      {500, {{"memory", 20}}},
                                      "<svg id=\"graph\"></svg>",
                                      "because"});
  for (const char* part : {"<title>bert.onnx – Warploom</title>", "4.00x", "6 → 2", "Before and after", "The search",
                           "500 ns", "What the machine allows", "memory 20 GB/s", "500 Gflop/s", "greedy", "least time",
                           "<svg id=\"graph\"></svg>", "because", "gcc 12", "plan 2 vector=8"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

// Returns a report of `count` groups whose names are "kernel A", "kernel B" and so on, with equal figures.
Json report_of_equals(int count) {
  Json report = report_of("");
  for (int i = 0; i < count; ++i) {
    report["groups"][i] = report["groups"][0];
    report["groups"][i]["what"] = cat("kernel ", std::string(1, static_cast<char>('A' + i)));
  }
  return report;
}

TEST(Charts, PointsOfTheRooflineHaveTheNumbersOfTheTable) {
  Json report = report_of_equals(3);
  report["groups"][1]["flops"] = 0;  // a group without arithmetic has no point in the chart, but a number in the table
  const std::string page = page_html({"t", report, {}, {500, {{"memory", 20}}}});
  const std::string chart = roofline_svg(report["groups"], {500, {{"memory", 20}}});
  for (const char* group : {"0: kernel A", "1: kernel B", "2: kernel C"}) EXPECT_THAT(page, HasSubstr(group));
  EXPECT_THAT(chart, HasSubstr("<title>2: kernel C: 10 operations a byte, 200 G/s</title>"));
  EXPECT_THAT(chart, Not(HasSubstr("kernel B")));
  // The points of A and C are at the same place, so the number of C (2) stands beside that of A (0).
  EXPECT_THAT(chart, HasSubstr("dx=\"8\" dy=\"4\" text-anchor=\"start\">0</text>"));
  EXPECT_THAT(chart, HasSubstr("dx=\"28\" dy=\"4\" text-anchor=\"start\">2</text>"));
}

TEST(Charts, PointsLieBelowTheLinesThatBoundThem) {
  // 10 operations a byte at 20 GB/s are 200 G/s, which the group reaches exactly: its point is on the line. Beyond 25
  // operations a byte the limit is 500 G/s.
  const std::string chart = roofline_svg(report_of("softmax")["groups"], {500, {{"memory", 20}}});
  EXPECT_THAT(chart, HasSubstr("cx=\"0.00%\" cy=\"69.90%\""));
  EXPECT_THAT(chart, HasSubstr("<line class=\"limit\" x1=\"0.00%\" y1=\"69.90%\" x2=\"39.79%\" y2=\"30.10%\"/>"));
  EXPECT_THAT(chart, HasSubstr("<line class=\"limit\" x1=\"0.00%\" y1=\"30.10%\" x2=\"100.00%\" y2=\"30.10%\"/>"));
}

TEST(Charts, CurvesAreNamedAndHaveUnits) {
  std::vector<Curve> curves;
  for (const char* name : {"A", "B", "C", "D", "E", "F", "G"})
    curves.push_back({name, cat("kernel ", name), {{1, 400}, {50, 200}, {100, 100}}});
  const std::string chart = curves_svg(curves);
  for (const char* part : {">trials</text>", ">best time so far / best time</text>", ">4x</text>", ">100</text>",
                           "<span class=\"c0 d0\"></span>kernel A", "<span class=\"c5 d0\"></span>kernel F"})
    EXPECT_THAT(chart, HasSubstr(part));
  // The seventh curve has the colour of the first, and is dashed.
  EXPECT_THAT(chart, HasSubstr("<span class=\"c0 d1\"></span>kernel G"));
  EXPECT_THAT(chart, HasSubstr("<polyline class=\"curve c0 d1\" points=\"1.00,0.00 50.00,0.00 50.00,50.00 100.00,50.00 "
                               "100.00,100.00 100,100\">"));
}

TEST(Page, LeavesOutWhatNobodyKnows) {
  const std::string page = page_html({"t", Json::object()});
  for (const char* part : {"The search", "What the machine allows", "Covers", "The graph"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("</html>"));
  const std::string unlimited = page_html({"t", report_of("softmax")});
  EXPECT_THAT(unlimited, HasSubstr("What the machine allows"));
  EXPECT_THAT(unlimited, Not(HasSubstr("Gflop/s of multiply-adds")));
}

TEST(Page, SaysWhoseTheLimitsAre) {
  Json report = report_of("softmax");
  EXPECT_FALSE(measured_limits(report).measured);
  EXPECT_THAT(page_html({"t", report, {}, {500, {{"memory", 20}}}}), HasSubstr("rates of the cost model"));
  report["environment"]["rates"] = Json::parse(
      R"({"gflops": 250, "memories": [{"name": "memory", "bytes": 1, "gbps": 11}, {"name": "L1", "gbps": 15}]})");
  const Limits limits = measured_limits(report);
  EXPECT_TRUE(limits.measured);
  EXPECT_EQ(limits.gflops, 250);
  EXPECT_EQ(limits.rates, (std::vector<std::pair<std::string, double>>{{"memory", 11}, {"L1", 15}}));
  const std::string page = page_html({"t", report, {}, limits});
  for (const char* part : {"what the worker measured of this machine", "memory 11 GB/s", "L1 15 GB/s", "250 Gflop/s"})
    EXPECT_THAT(page, HasSubstr(part));
  // A report may come from anybody, so its rates may have any type and value.
  for (const char* rates : {"5", "[]", R"({"gflops": -1})", R"({"gflops": "x", "memories": 3})"}) {
    report["environment"]["rates"] = Json::parse(rates);
    EXPECT_FALSE(measured_limits(report).measured) << rates;
  }
  report["environment"] = "none";
  EXPECT_FALSE(measured_limits(report).measured);
}

TEST(Page, TakesNoNameForMarkup) {
  const std::string evil = "</title><script>alert('1')</script>\"&";
  Json report = report_of(evil);
  report["target"]["device"] = evil;
  report["covers"][0]["why"] = evil;
  const std::string page = page_html({evil, report, {{"k", evil, {{1, 20}, {2, 10}}}}, {1, {{evil, 1}}}, "", evil});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;"));
}

}  // namespace
}  // namespace wl
