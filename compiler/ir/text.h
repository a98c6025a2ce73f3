// The canonical text form of a Graph: parse(print(g)) == g, and print(parse(t)) == t for a canonical text t.
//
//   graph {
//     %0 = input "x" : f32[4096,1024] normal(0,1)
//     %1 = reduce_max %0 axes=[1] : f32[4096]
//     %2 = broadcast %1 dims=[0] : f32[4096,1024]
//     %3 = sub %0 %2 : f32[4096,1024]
//     %4 = constant 0.5 : f32[4096,1024]
//     %5 = contract %3 %0 "mk,nk->mn" : f32[4096,4096]
//     output "y" %5
//   }
//
// An input's fill says how its values are generated: normal(mean,stddev) for floats, uniform(low,high) for integers,
// literal(v,...) for given values, or, for more than 32 given floats, bytes("..."): their bytes in base64, each as an
// f64 if it is one, else as an f32, the low byte first. Numbers print in the shortest form that reads back equal;
// infinities and NaN print as inf, -inf and nan. `#` starts a comment.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

namespace wl {

std::string print(const Graph& graph);
std::string print_node(const Graph& graph, NodeId id);

// Parses any bytes without crashing. A graph that is returned has passed verify(). Errors in a line begin with "line
// L:"; errors of the whole graph, such as a missing output, are those of verify().
absl::StatusOr<Graph> parse(std::string_view text);

// Returns the SHA-256, in hexadecimal, of the canonical text with inputs renamed i0, i1, ..., outputs renamed o0, o1,
// ... and all fills of floats made normal(0,1), so that the hash depends on what the graph computes and not on names.
std::string graph_hash(const Graph& graph);

// Returns the description of a group for people: up to four of its ops, those that are not elementwise first; the
// number of other ops; and the shape of the first output: "contract+add+erf f32[512,3072]",
// "reduce_max+reduce_sum+sub+exp+1 f32[64]".
std::string describe_group(const Graph& group);
// Returns the description of the group whose canonical text is `text`; "?" if it cannot be parsed.
std::string describe_group(const std::string& text);

}  // namespace wl
