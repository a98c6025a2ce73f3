// What the tests of plan share: a machine, graphs from text, and the brute-force meaning of a Domain.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/plan/domain.h"

namespace wl {

inline Machine test_machine() {
  Machine machine;
  machine.target = *target_named("cpu:avx512");
  machine.threads = 2;
  return machine;
}

Graph graph_of(std::string_view text);

// Walks every iteration of the domain's loops and compares each address with the element that the graph's semantics
// say the operand reads, found by walking the views element by element. Empty when all agree and every output element
// is addressed exactly; otherwise the first disagreement.
std::string check_domain(const Graph& graph, const Domain& domain);

}  // namespace wl
