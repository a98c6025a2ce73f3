// For every random group that analyze() accepts, the addresses are exactly those of the elements that the graph reads.
#include <gtest/gtest.h>

#include "compiler/domain/domain.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

TEST(DomainRandom, AcceptedGroupsAddressWhatTheGraphMeans) {
  int accepted[4] = {}, refused = 0;
  for (uint64_t seed = 1; seed <= 12000; ++seed) {
    const Graph graph = random_domain_graph(seed);
    const absl::StatusOr<Domain> domain = analyze(graph, test_machine());
    if (!domain.ok()) {
      EXPECT_EQ(domain.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused;
      continue;
    }
    ++accepted[static_cast<int>(domain->cls)];
    const std::string wrong = check_domain(graph, *domain);
    ASSERT_EQ(wrong, "") << "seed " << seed << "\n" << print(graph) << domain->text();
  }
  std::printf("map %d rows %d columns %d contract %d refused %d\n", accepted[0], accepted[1], accepted[2], accepted[3],
              refused);
  for (int count : accepted) EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace wl
