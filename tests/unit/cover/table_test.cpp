// The table of covers: the largest graph that each cover accepts.
#include <gtest/gtest.h>

#include "compiler/base/status.h"
#include "compiler/cover/table/covers.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

Graph chain_of(int64_t ops) {
  std::string text = "graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n";
  for (int64_t i = 1; i <= ops; ++i) append(&text, "  %", i, " = exp %", i - 1, " : f32[4]\n");
  append(&text, "  output \"y\" %", ops, "\n}\n");
  return parse(text).value();
}

// A pool of candidates for a graph of 30,000 ops takes gigabytes of memory, so such a graph is refused.
TEST(CoverTable, RefusesGraphsThatWouldTakeTooMuchMemory) {
  const CoverRow* planned = cover_named("planned").value();
  EXPECT_TRUE(fits_cover(*planned, chain_of(planned->most_ops)).ok());
  const Graph larger = chain_of(planned->most_ops + 1);
  const absl::Status refused = fits_cover(*planned, larger);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("choose another --cover"), std::string::npos) << refused;
  EXPECT_TRUE(fits_cover(*cover_named("stitched").value(), larger).ok());
}

}  // namespace
}  // namespace wl
