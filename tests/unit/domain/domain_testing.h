// Helpers for tests of domains: a machine, graphs from text, and the evaluation of a Domain by brute force.
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
  // the fewest elements that a part may have; so few that even small groups are divided into parts
  machine.part_elements = 4;
  return machine;
}

Graph graph_of(std::string_view text);

// Returns a random graph of about `steps` ops of all kinds over small shapes; with `steps` = 0, of 2 to 10 ops.
Graph random_domain_graph(uint64_t seed, int steps = 0);

// Returns the values of every node, row-major. Inputs are generated unless they are given.
using InputValues = std::function<double(NodeId input, int64_t index)>;
std::vector<std::vector<double>> reference(const Graph& graph, const InputValues& inputs = nullptr);

// Walks all iterations of the domain's loops. Every address must be that of the element that the operand reads by the
// graph's semantics, found by following the views element by element. Returns "" if all agree and every output element
// is addressed, otherwise the first difference.
std::string check_domain(const Graph& graph, const Domain& domain);

// Checks that every group is legal and that the groups, run one after another on reference values, compute the whole
// graph. Returns "" if so, otherwise what is wrong.
std::string check_cover(const Graph& graph, const Cover& cover);

}  // namespace wl
