// Rewrite rules of graphs. Each rule is a named row of kRules and can be disabled; tests check for every row that
// random graphs keep their values. A rule looks at one node of the graph that is being rebuilt, and may return a
// replacement for it, which the rule builds with the Builder.
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
  std::string_view says;  // the rule in short form, such as "a + 0 -> a"
  // `node` is a node of the old graph whose operands have been replaced by their numbers in `to`. Returns the
  // replacement's number in `to`. If the rule does not apply, returns nullopt and adds nothing to `to`.
  std::optional<NodeId> (*apply)(Builder& to, const Node& node);
  // Whether the rule may change the last bits of a quotient. Such a rule is not applied to a value that is later
  // rounded to an integer, since near a tie the rounding could then give another integer.
  bool moves_ties = false;
};
std::span<const Rule> rules();  // returns the rows of kRules, in the order in which they are tried

// Applies all rules except those named in `disabled` until none applies, or until a limit that is not meant to be
// reached (rules.cpp). Equal nodes become one, and dead code is removed. `fired`, if given, collects the names of the
// rules that applied; `rounds`, if given, is set to the number of walks over the graph, the last of which changes
// nothing. If `work`, which may be null, reaches its limit first, its status is returned.
absl::StatusOr<Graph> simplify(const Graph& graph, const std::set<std::string, std::less<>>& disabled = {},
                               std::set<std::string, std::less<>>* fired = nullptr, int* rounds = nullptr,
                               Work* work = nullptr);

// Applies the rule byte-products together with the few rules that show it which values are constant. If byte-products
// applies nowhere, the graph is returned unchanged.
absl::StatusOr<Graph> with_byte_products(const Graph& graph);

}  // namespace wl
