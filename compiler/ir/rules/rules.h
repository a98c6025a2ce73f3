// Rewrite rules. Each is a named row that can be disabled; tests that walk kRules fuzz every row for equality of
// values. A rule looks at one node of the graph being rebuilt and may return a replacement built with the Builder.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "compiler/base/work.h"
#include "compiler/ir/build.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Rule {
  std::string_view name;
  std::string_view says;  // the rule in short, "a + 0 -> a"
  // `node` has its operands already rewritten into `to`. Returns nullopt if the rule does not apply.
  std::optional<NodeId> (*apply)(Builder& to, const Node& node);
  // Whether the rule may change a quotient's last bits. It is then not applied to values that are rounded to an
  // integer, where a tie would be rounded to another number.
  bool moves_ties = false;
};
std::span<const Rule> rules();  // returns kRules

// Applies all rules but `disabled` until none applies. Terminates since every rule decreases (node count, then cost,
// then a fixed order). Common subexpressions are shared by interning, and finish() removes dead code. `fired`, if
// given, collects the names of rules that applied, `rounds` the number of walks over the graph (the last one changes
// nothing). If `work` (may be null) ends before, its status.
absl::StatusOr<Graph> simplify(const Graph& graph, const std::set<std::string, std::less<>>& disabled = {},
                               std::set<std::string, std::less<>>* fired = nullptr, int* rounds = nullptr,
                               Work* work = nullptr);

// Applies the rule byte-products, and no other to a graph without such products.
absl::StatusOr<Graph> with_byte_products(const Graph& graph);

}  // namespace wl
