// `warploom-worker --check`: its report as text and as JSON, and the rates that it measures.
#include "worker/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/target/target.h"
#include "nlohmann/json.hpp"
#include "tests/unit/worker/kernels.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

MachineCheck some_check() {
  MachineCheck check;
  check.findings = {{"runner", Readiness::kOk, "/usr/bin/warploom-runner", ""},
                    {"clock governor", Readiness::kWarn, "powersave", "cpupower frequency-set -g performance"}};
  check.rates = {{"cpu", "copy", 20.5, 0, "GB/s", "the data sheet"},
                 {"cpu", "multiply-adds", 96, 128, "GFLOP/s", "2 threads at 2.00 GHz"},
                 {"cuda:0", "copy", 0, 3352, "GB/s", "2 x 2619 MHz x 5120 bits"}};
  return check;
}

TEST(MachineCheck, IsReadyUnlessSomethingIsMissing) {
  MachineCheck check = some_check();
  EXPECT_TRUE(check.ready()) << "a warning is no reason";
  check.findings.push_back({"g++", Readiness::kMissing, "not on PATH", "install g++"});
  EXPECT_FALSE(check.ready());
  EXPECT_THAT(text_of(check), HasSubstr("\nnot ready\n"));
}

TEST(MachineCheck, SaysWhatToDoAndHowFastDevicesAre) {
  EXPECT_EQ(text_of(some_check()),
            "ok       runner             /usr/bin/warploom-runner\n"
            "warn     clock governor     powersave\n"
            "                            -> cpupower frequency-set -g performance\n"
            "rate     cpu copy           20.5 GB/s; compare with the data sheet\n"
            "rate     cpu multiply-adds  96 GFLOP/s, of 128 (2 threads at 2.00 GHz): 75 %\n"
            "rate     cuda:0 copy        not measured, of 3352 (2 x 2619 MHz x 5120 bits): 0 %\n"
            "ready\n");
}

TEST(MachineCheck, IsJsonForPrograms) {
  const auto json = nlohmann::json::parse(json_of(some_check()));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["ready"], true);
  EXPECT_EQ(json["findings"][1]["readiness"], "warn");
  EXPECT_EQ(json["findings"][1]["todo"], "cpupower frequency-set -g performance");
  EXPECT_EQ(json["rates"][1]["measured"], 96);
  EXPECT_EQ(json["rates"][1]["nominal"], 128);
}

TEST(MachineCheck, AFolderThatCannotBeUsedIsMissing) {
  for (const char* folder : {"/nowhere", "/proc"}) {
    std::vector<Finding> findings;
    MeasureOptions options;
    options.work_dir = folder;
    check_host(options, &findings);
    const auto work =
        std::find_if(findings.begin(), findings.end(), [](auto& one) { return one.what == "work folder"; });
    ASSERT_NE(work, findings.end());
    EXPECT_EQ(work->readiness, Readiness::kMissing) << folder << ": " << work->found;
    EXPECT_THAT(work->todo, HasSubstr("--work-dir"));
  }
}

// The worker does not link the compiler's table of targets. Its own facts about a target must agree with that table.
TEST(MachineCheck, VectorsAreThoseOfTheTarget) {
  for (const CpuTarget& row : cpu_targets()) {
    const auto target = target_named(row.name);
    ASSERT_TRUE(target.ok()) << row.name;
    if ((*target)->family != "cpu") continue;
    EXPECT_EQ(row.lanes, (*target)->lanes) << row.name;
    EXPECT_LE(row.flops_per_clock * 6, (*target)->peak.flops_per_ns) << "at 6 GHz no more than the peak: " << row.name;
  }
}

TEST(MachineCheck, KernelsOfTheCpuAreRightAndTimed) {
  MeasureOptions options = testing::options();
  MachineCheck check;
  check_rates(describe_cpu(), nullptr, options, &check);
  ASSERT_EQ(check.findings.size(), 1u);
  EXPECT_EQ(check.findings[0].found, "compile, run and are right") << check.findings[0].todo;
  ASSERT_EQ(check.rates.size(), 2u);
  for (const DeviceRate& rate : check.rates) EXPECT_GT(rate.measured, 0) << rate.what;

  options.runner = "/nowhere";
  MachineCheck broken;
  check_rates(describe_cpu(), nullptr, options, &broken);
  EXPECT_FALSE(broken.ready());
}

}  // namespace
}  // namespace wl
