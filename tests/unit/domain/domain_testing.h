// Helpers of the tests of domains: a machine, graphs from text, and the brute-force meaning of a Domain.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/domain/domain.h"
#include "compiler/ir/graph.h"

namespace wl {

inline Machine test_machine() {
  Machine machine;
  machine.target = *target_named("cpu:avx512");
  machine.threads = 2;
  machine.part_elements = 4;  // so small that small groups have parts
  return machine;
}

Graph graph_of(std::string_view text);

// Returns a graph of about `steps` ops of all kinds over small shapes; 0: between 2 and 10 ops.
Graph random_domain_graph(uint64_t seed, int steps = 0);

// Returns the values of every node, row-major. Inputs are generated unless they are given.
using InputValues = std::function<double(NodeId input, int64_t index)>;
std::vector<std::vector<double>> reference(const Graph& graph, const InputValues& inputs = nullptr);

// Walks every iteration of the domain's loops and compares each address with the element that the operand reads by the
// graph's semantics, which is found by following the views element by element. Returns "" when all agree and every
// output element is addressed exactly, otherwise the first difference.
std::string check_domain(const Graph& graph, const Domain& domain);

// Checks that the groups, run one after the other on reference values, give the results of the whole graph, and that
// every group is legal. Returns "" if so.
std::string check_cover(const Graph& graph, const Cover& cover);

}  // namespace wl
