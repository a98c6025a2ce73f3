// What programs ran survives the way over the wire, and what is no such message is refused.
#include "proto/usage.h"

#include <gtest/gtest.h>

#include "proto/limits.h"

namespace wl {
namespace {

Usage some_usage() {
  Usage usage;
  usage.days = 3;
  usage.total = {.ns = {1, 2, 3}, .calls = {4, 5, 6}};
  usage.teams = {{.team = "a",
                  .sum = {.ns = {1, 0, 0}, .calls = {1, 0, 0}},
                  .saved_ns = 7,
                  .cost_s = 8,
                  .trials = 9,
                  .missed = 10}};
  usage.devices = {{"cpu", {.ns = {0, 1, 0}, .calls = {0, 1, 0}}}};
  usage.models = {{"", {.ns = {0, 0, 1}, .calls = {0, 0, 1}}}};
  usage.saved_ns = 11;
  usage.cost_s = 12;
  usage.trials = 13;
  KernelUsage kernel;
  kernel.key = kernel.digest = std::string(64, 'a');
  kernel.name = "exp f32[8]";
  kernel.team = "a";
  kernel.target = "cpu:avx2";
  kernel.device = "cpu";
  kernel.model = "m.onnx";
  kernel.kind = UseKind::kPredicted;
  kernel.calls_per_day = 14;
  kernel.ns_per_day = 15;
  kernel.best_ns = 16;
  kernel.default_ns = 17;
  kernel.bound_ns = 18;
  kernel.saving_per_day = 19;
  kernel.trials = 20;
  kernel.stopped = "why";
  usage.kernels = {kernel};
  usage.missed = {{.team = "a",
                   .model = "m",
                   .target = "cpu",
                   .device = "d",
                   .count = 21,
                   .last_unix_ms = 22,
                   .job = "jobs/1",
                   .why = "w"}};
  usage.kernels_in_all = 23;
  usage.missed_in_all = 24;
  usage.left_out = 25;
  usage.background = "off";
  usage.more_teams = 26;
  usage.more_devices = 27;
  usage.more_models = 28;
  return usage;
}

TEST(UsageWire, SurvivesTheWay) {
  const v1::Usage message = to_proto(some_usage());
  EXPECT_TRUE(check_fields(message).ok()) << check_fields(message);
  EXPECT_EQ(from_proto(message).value(), some_usage());
}

TEST(UsageWire, RefusesKindsThatThereAreNot) {
  v1::Usage message = to_proto(some_usage());
  message.mutable_kernels(0)->set_kind("lucky");
  EXPECT_EQ(from_proto(message).status().message(),
            "message field Usage.Kernel.kind: expected tuned, predicted or default, found \"lucky\"");
  message = to_proto(some_usage());
  message.mutable_kernels(0)->set_digest("a");
  EXPECT_FALSE(check_fields(message).ok());
  message = to_proto(some_usage());
  message.set_saved_ns(-1);
  EXPECT_FALSE(check_fields(message).ok());
}

}  // namespace
}  // namespace wl
