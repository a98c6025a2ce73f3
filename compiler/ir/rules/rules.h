// Rewrite rules: each a named row, switchable, and fuzzed for value equality automatically by tests that walk kRules.
// A rule looks at one node of the graph being rebuilt and may return a replacement built with the Builder.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/build.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Rule {
  std::string_view name;
  std::string_view says;  // "a + 0 -> a"
  // `node` has its operands already rewritten into `to`. nullopt: does not apply.
  std::optional<NodeId> (*apply)(Builder& to, const Node& node);
  // A quotient that becomes another number: not where it is rounded to an integer, whose ties have to stay ties.
  bool moves_ties = false;
};
std::span<const Rule> rules();  // kRules

// Applies all rules but `disabled` until none applies. Ends: every rule lowers (node count, then cost, then a fixed
// order). CSE comes from interning, dead code from finish(). `fired`, if given, collects the names of rules that
// applied; `rounds` how often the graph was walked (the last walk changes nothing).
absl::StatusOr<Graph> simplify(const Graph& graph, const std::set<std::string, std::less<>>& disabled = {},
                               std::set<std::string, std::less<>>* fired = nullptr, int* rounds = nullptr);

}  // namespace wl
