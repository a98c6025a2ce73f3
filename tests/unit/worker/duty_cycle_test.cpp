// A worker with a share of its machine pauses after it has worked.
#include "worker/drivers/duty_cycle.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

using Seconds = DutyCycle::Seconds;

TEST(DutyCycle, RestsInProportionToItsWork) {
  DutyCycle cycle(0.25);
  EXPECT_EQ(cycle.due(), Seconds(0)) << "it begins at once";
  cycle.worked(Seconds(2));
  EXPECT_EQ(cycle.due(), Seconds(6));
  cycle.rested(Seconds(4));
  EXPECT_EQ(cycle.due(), Seconds(2));
  cycle.worked(Seconds(1));
  EXPECT_EQ(cycle.due(), Seconds(5)) << "a pause that was cut short is made up for";
  cycle.rested(Seconds(9));
  EXPECT_EQ(cycle.due(), Seconds(0));
  cycle.worked(Seconds(1));
  EXPECT_EQ(cycle.due(), Seconds(0)) << "so is one that took longer";
}

TEST(DutyCycle, TheWholeMachineNeedsNoRest) {
  for (const double share : {0.0, 1.0}) {
    DutyCycle cycle(share);
    cycle.worked(Seconds(100));
    EXPECT_EQ(cycle.due(), Seconds(0)) << share;
  }
}

}  // namespace
}  // namespace wl
