// The peak rates of a device are measured by real kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/worker/gpu_testing.h"
#include "tests/unit/worker/kernels.h"
#include "worker/probes.h"

namespace wl {
namespace {

TEST(Rates, OfACpuAreThoseOfItsMemoryAndItsCaches) {
  Device device = describe_device();
  const auto rates = measure_rates(device, testing::options());
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_GT(rates->gflops, 0);
  ASSERT_GE(rates->memories.size(), 2u);
  EXPECT_EQ(rates->memories[0].name, "memory");
  EXPECT_GE(rates->memories[0].bytes, 63 << 20);
  for (size_t i = 0; i < rates->memories.size(); ++i) {
    EXPECT_GT(rates->memories[i].gbps, 0) << rates->memories[i].name;
    if (i == 0) continue;
    EXPECT_LT(rates->memories[i].bytes, rates->memories[i - 1].bytes) << "nearer ones are smaller";
  }
  EXPECT_EQ(rates->memories.back().name, "L1");
  EXPECT_LE(rates->memories.back().bytes, device.l1_bytes * device.threads / 2);

  device.l2_bytes = device.l3_bytes = 0;
  const auto without = measure_rates(device, testing::options());
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->memories.size(), 2u) << "of caches that are not there";
}

TEST(Rates, SayWhyThereAreNone) {
  MeasureOptions options = testing::options();
  options.runner = "/nowhere";
  EXPECT_FALSE(measure_rates(describe_device(), options).ok());
  const std::atomic<bool> cancel = true;
  options = testing::options();
  options.cancel = &cancel;
  EXPECT_TRUE(absl::IsCancelled(measure_rates(describe_device(), options).status()));
}

}  // namespace
}  // namespace wl
