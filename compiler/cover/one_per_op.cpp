#include <algorithm>

#include "compiler/cover/cover.h"
#include "compiler/cover/values.h"

namespace wl {

absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine, Work* work) {
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine, nullptr, work));
  std::vector<Group> groups = values.copies();
  std::vector<std::vector<NodeId>> own(graph.nodes.size());
  for (NodeId anchor : values.anchors()) own[anchor].push_back(anchor);
  // Every anchor is visited after its operands, so the casts of a chain are merged one after another into the reader
  // of the last cast.
  for (NodeId anchor : values.anchors()) {
    if (graph.nodes[anchor].op != Op::cast || values.is_output(anchor) || values.readers(anchor).size() != 1) continue;
    if (!go_on(work, kAnalysisSteps)) return work->status();
    std::vector<NodeId>& into = own[values.readers(anchor)[0]];
    std::vector<NodeId> both = own[anchor];
    both.insert(both.end(), into.begin(), into.end());
    std::sort(both.begin(), both.end());
    if (!analyze(extract(graph, values.group(both)), machine).ok()) continue;
    into = std::move(both);
    own[anchor].clear();
  }
  for (const std::vector<NodeId>& anchors : own)
    if (!anchors.empty()) groups.push_back(values.group(anchors));
  return ordered(graph, std::move(groups));
}

}  // namespace wl
