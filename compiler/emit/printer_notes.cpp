// Prints the comments that say which operations of the graph the printed code computes.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/emit/printer.h"

namespace wl {
namespace {

constexpr size_t kMostInNote = 6;  // the most nodes that the comment of a loop lists

// Adds to `found` the origins (graph nodes) of all values that the instructions of a body define, each once, in order.
void add_origins(const Kernel& kernel, const std::vector<Instr>& body, std::vector<NodeOrigin>& found) {
  const auto add = [&found](NodeOrigin origin) {
    const auto same = [&origin](NodeOrigin known) { return known.node == origin.node && known.graph == origin.graph; };
    if (origin.node >= 0 && std::none_of(found.begin(), found.end(), same)) found.push_back(origin);
  };
  each_instr(body, [&](const Instr& instr) {
    for (const ExprNode& node : instr.expr) add(node.origin);
    if (instr.result >= 0) add(kernel.tiles[instr.result].origin);
  });
}

std::string text_of(NodeOrigin origin) {
  return origin.graph == 0 ? cat("%", origin.node) : cat("%", origin.node, " of part ", origin.graph);
}

}  // namespace

void Printer::print_listing() {
  for (size_t graph = 0; graph < listing_.size(); ++graph) {
    if (graph > 0) out_.note_line(cat("part ", graph, ":"));
    for (const std::string& node : listing_[graph]) out_.note_line(node);
  }
}

// Adds a comment to the line that was printed last: the graph node that a value belongs to, and the node's op.
void Printer::note(NodeOrigin origin) {
  if (listing_.empty() || origin.node < 0) return;
  // A line of the listing is "%5 = reduce_sum %4 axes=[1] : f32[8]".
  const std::vector<std::string>& lines = listing_.at(static_cast<size_t>(origin.graph));
  const std::vector<std::string> words = absl::StrSplit(lines.at(static_cast<size_t>(origin.node)), ' ');
  out_.note(cat(text_of(origin), " ", words.at(2)));
}

// Adds a comment to the line that was printed last: the name of a loop, and the graph nodes that the loop computes.
void Printer::note_loop(const Instr& loop) {
  if (listing_.empty()) return;
  std::vector<NodeOrigin> inside;
  add_origins(kernel_, loop.body, inside);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(inside.size(), kMostInNote); ++i) names.push_back(text_of(inside[i]));
  if (inside.size() > kMostInNote) names.push_back("...");
  const std::string& name = kernel_.vars[loop.var].name;
  out_.note(names.empty() ? name : cat(name, ": ", absl::StrJoin(names, ", ")));
}

}  // namespace wl
