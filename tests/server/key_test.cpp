// The keys under which stores file their records and results. A change of one is a change of kKeyVersion.
#include <gtest/gtest.h>

#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "server/jobs/job_plan.h"
#include "tests/server/fakes.h"

namespace wl {
namespace {

TEST(Keys, AreThoseOfExistingStores) {
  const std::string text = "graph {\n  %0 = input \"x\" : f32[4]\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n";
  const Graph graph = parse(text).value();
  const Device device = fake_device();
  for (const bool cold : {false, true}) {
    TuneOptions options;
    options.cold = cold;
    const std::string measured = cold ? "cold" : "warm";
    EXPECT_EQ(problem_key(graph, device, options), Encoder("warploom.problem", 1)
                                                       .text(graph_hash(graph))
                                                       .text(device.fingerprint())
                                                       .text("strict")
                                                       .text(measured)
                                                       .hash());
    EXPECT_EQ(result_key(text, device, options), Encoder("warploom.result", 1)
                                                     .text(text)
                                                     .text(device.fingerprint())
                                                     .text(environment_of(device))
                                                     .text("strict")
                                                     .text(measured)
                                                     .text(options.cover)
                                                     .hash());
  }
}

}  // namespace
}  // namespace wl
