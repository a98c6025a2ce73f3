// What the tests of plan share: a machine, graphs from text, and the brute-force meaning of a Domain.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/ir/graph.h"
#include "compiler/plan/domain.h"

namespace wl {

inline Machine test_machine() {
  Machine machine;
  machine.target = *target_named("cpu:avx512");
  machine.threads = 2;
  machine.part_elements = 4;  // small groups have parts
  return machine;
}

Graph graph_of(std::string_view text);

// A graph of about `steps` ops of all kinds over small shapes; 0: between 2 and 10.
Graph random_plan_graph(uint64_t seed, int steps = 0);

// The values of every node, row-major. Inputs: generated unless given.
using InputValues = std::function<double(NodeId input, int64_t index)>;
std::vector<std::vector<double>> reference(const Graph& graph, const InputValues& inputs = nullptr);

// Walks every iteration of the domain's loops and compares each address with the element that the graph's semantics
// say the operand reads, found by walking the views element by element. Empty when all agree and every output element
// is addressed exactly; otherwise the first disagreement.
std::string check_domain(const Graph& graph, const Domain& domain);

// Groups run one after the other on reference values must give what the whole graph gives; every group must be legal.
// Empty when so.
std::string check_cover(const Graph& graph, const Cover& cover);

}  // namespace wl
