#include "compiler/schedule/lower/lower.h"

#include "compiler/ir/rounded_exps.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/packed/packed.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

constexpr size_t kLongestLine = 160;

std::vector<std::string> lines_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    std::string line =
        node.op == Op::input ? cat("%", id, " = input : ", type_text(node.dtype, node.shape)) : print_node(graph, id);
    if (line.size() > kLongestLine) line = cat(line.substr(0, kLongestLine), "...");
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

absl::StatusOr<Space> space_of(const Graph& group, const Domain& domain, const Machine& machine) {
  if (machine.target == nullptr) return invalid("the machine names no target");
  const bool host = machine.target->family != "cuda" && machine.target->family != "hip";
  if (host && !machine.gcc && !machine.clang)
    return invalid("the machine has neither gcc nor clang: nothing can be compiled");
  if (domain.cls != LoopClass::kPacked) return space_of_connected(group, domain, machine);
  Space space = finished(space_packed(domain, machine), machine);
  if (space.seeds.empty())
    return unimplemented("no schedule is legal on ", machine.target->name, " for all unconnected parts of the group");
  return space;
}

absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine) {
  absl::StatusOr<Kernel> kernel = domain.cls == LoopClass::kPacked ? lower_packed(group, domain, schedule, machine)
                                                                   : lower_connected(group, domain, schedule, machine);
  // If the group rounds all results of exp to narrower floats, the approximate exp instruction of a GPU is exact
  // enough. CPUs have no such instruction.
  if (kernel.ok() && machine.target->is_gpu() && rounds_all_exps(group))
    each_instr(kernel->body, [](Instr& instr) {
      for (ExprNode& node : instr.expr)
        node.rounded = node.kind == ExprNode::Kind::kOp && node.op == Op::exp && node.dtype != DType::f64;
    });
  return kernel;
}

NodeListing listing_of(const Graph& group, const Domain& domain, const Schedule& schedule) {
  NodeListing listing = {lines_of(group)};
  if (domain.cls == LoopClass::kPacked)
    for (const Member& member : domain.packed->members) listing.push_back(lines_of(member.graph));
  if (domain.cls == LoopClass::kStitched)
    if (const Stitched* choice = named_choice(*domain.stitch, schedule))
      for (const Stage& stage : choice->stages) listing.push_back(lines_of(stage.graph));
  return listing;
}

}  // namespace wl
