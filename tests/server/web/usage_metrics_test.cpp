// The metrics of what programs ran, in the format of Prometheus.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics/metrics.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UsageMetrics, HaveTeamsAndKinds) {
  Usage usage;
  usage.teams = {{.team = "vision",
                  .sum = {.ns = {2e9, 0, 1e9}, .calls = {20, 0, 10}},
                  .saved_ns = 3e9,
                  .cost_s = 4,
                  .trials = 5,
                  .missed = 6},
                 {.team = "", .sum = {}}};
  const std::string text = usage_text(usage);
  for (const char* line :
       {"\nwarploom_kernel_time_seconds{kind=\"tuned\",team=\"vision\"} 2\n",
        "\nwarploom_kernel_time_seconds{kind=\"predicted\",team=\"vision\"} 0\n",
        "\nwarploom_kernel_time_seconds{kind=\"default\",team=\"vision\"} 1\n",
        "\nwarploom_kernel_time_seconds{kind=\"default\",team=\"\"} 0\n",
        "\nwarploom_kernel_calls{kind=\"tuned\",team=\"vision\"} 20\n",
        "\nwarploom_kernel_saved_seconds{team=\"vision\"} 3\n", "\nwarploom_search_time_seconds{team=\"vision\"} 4\n",
        "\nwarploom_missed_jobs{team=\"vision\"} 6\n", "# TYPE warploom_kernel_time_seconds gauge\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(usage_text({}), Not(HasSubstr("{"))) << "no series without teams";
}

}  // namespace
}  // namespace wl
