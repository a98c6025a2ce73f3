#include "client/remote/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/report_table.h"

namespace wl {
namespace {

using testing::HasSubstr;
using testing::Not;

Job tuned(std::vector<int64_t> samples) {
  GroupResult large, small;
  large.graph = small.graph =
      "graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n  %1 = neg %0 : f32[4]\n  output \"y\" %1\n}\n";
  large.count = 2;
  large.samples_ns = std::move(samples);
  small.count = 1;
  small.samples_ns = {10, 30, 30};  // the time of this group is too small to matter in the report
  Job job;
  job.result.emplace();
  job.result->groups = {large, small};
  return job;
}

TEST(Report, SaysWhenAMachineWasBusy) {
  EXPECT_NEAR(spread_of(*tuned({1000, 1020, 1030}).result), 0.03, 0.01);
  EXPECT_THAT(report_table(tuned({1000, 1020, 1030}), false, false), Not(HasSubstr("other programs")));
  EXPECT_THAT(report_table(tuned({1000, 1500, 1600}), false, false),
              HasSubstr("spread by 51 %: other programs were using the machine"));
  EXPECT_EQ(spread_of(JobResult{}), 0) << "nothing was timed";
}

}  // namespace
}  // namespace wl
