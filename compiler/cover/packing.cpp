#include "compiler/cover/packing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/cover/stitching.h"
#include "compiler/domain/axes.h"
#include "compiler/domain/group_order.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/packed/packed.h"

namespace wl {
namespace {

constexpr size_t kMostMembers = 8;

// Returns the smallest node in each computed node's connected component; -1 for leaves (inputs, constants, iotas).
std::vector<NodeId> components(const Graph& group) {
  std::vector<NodeId> root(group.nodes.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](NodeId id) {
    while (root[id] != id) id = root[id] = root[root[id]];
    return id;
  };
  const auto count = static_cast<NodeId>(group.nodes.size());
  for (NodeId id = 0; id < count; ++id)
    for (NodeId operand : group.nodes[id].operands) {
      if (is_leaf(group.nodes[operand])) continue;
      const NodeId a = find(id), b = find(operand);
      root[std::max(a, b)] = std::min(a, b);
    }
  for (NodeId id = 0; id < count; ++id) root[id] = is_leaf(group.nodes[id]) ? -1 : find(id);
  return root;
}

// Returns one group for each connected component of `group`. Each stores the outputs that its component computes.
absl::StatusOr<std::vector<Group>> parts_of(const Graph& group) {
  const std::vector<NodeId> component = components(group);
  std::map<NodeId, Group> found;
  for (const Output& output : group.outputs) {
    if (component[output.node] < 0) return invalid("output ", output.name, " is an input, constant or iota");
    std::vector<NodeId>& stores = found[component[output.node]].stores;
    if (std::find(stores.begin(), stores.end(), output.node) != stores.end())
      return invalid("two outputs are the same value");
    stores.push_back(output.node);
  }
  std::vector<Group> parts;
  for (auto& [root, part] : found) {
    std::vector<char> needed(group.nodes.size(), 0);
    for (NodeId store : part.stores) needed[store] = 1;
    for (auto id = static_cast<NodeId>(group.nodes.size()); id-- > 0;) {
      if (needed[id] == 0) continue;
      for (NodeId operand : group.nodes[id].operands) needed[operand] = 1;
    }
    for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id)
      if (needed[id] != 0) (group.nodes[id].op == Op::input ? part.reads : part.ops).push_back(id);
    parts.push_back(in_order(group, std::move(part)));
  }
  return parts;
}

absl::StatusOr<Member> member_of(const Graph& group, const Group& part, const Machine& machine, StitchOptions options) {
  Member member;
  member.graph = extract(group, part);
  absl::StatusOr<Domain> domain = analyze(member.graph, machine);
  // Parts of a pack may not walk an axis in turns (carried.h): the stages of the turns would add open choices to the
  // pack's space, so that nearly no point of the space would be legal, and counting the legal points would not end. For
  // the same reason, and because blocks of other members have no parts of the workspace, all values are in scratch.
  options.turns = false;
  options.levels = StitchOptions::Levels::kScratch;
  if (!domain.ok() && machine.target->is_gpu()) domain = stitch(member.graph, machine, options);
  if (!domain.ok()) return domain.status();
  member.domain = *std::move(domain);
  const std::vector<NodeId> inputs = group.inputs();
  const auto place = [](const auto& list, const auto& is) {
    return static_cast<int>(std::find_if(list.begin(), list.end(), is) - list.begin());
  };
  for (NodeId read : part.reads)
    member.buffers.push_back({place(inputs, [read](NodeId input) { return input == read; }), -1, {}});
  for (NodeId store : part.stores)
    member.buffers.push_back({static_cast<int>(inputs.size()) +
                                  place(group.outputs, [store](const Output& output) { return output.node == store; }),
                              -1,
                              {}});
  return member;
}

}  // namespace

bool is_unconnected(const Graph& group) {
  const std::vector<NodeId> component = components(group);
  return std::any_of(group.outputs.begin(), group.outputs.end(),
                     [&](const Output& output) { return component[output.node] != component[group.outputs[0].node]; });
}

absl::StatusOr<Domain> pack(const Graph& group, const Machine& machine, const StitchOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::vector<Group> parts, parts_of(group));
  if (parts.size() < 2) return invalid("the group is connected, so it has no parts to pack");
  if (parts.size() > kMostMembers)
    return invalid("the group has ", parts.size(), " unconnected parts; the most are ", kMostMembers);
  auto packed = std::make_shared<Packed>();
  std::map<std::string, int> kinds;
  for (const Group& part : parts) {
    WL_ASSIGN_OR_RETURN(Member member, member_of(group, part, member_machine(machine), options));
    member.kind = kinds.try_emplace(print(member.graph), static_cast<int>(kinds.size())).first->second;
    packed->members.push_back(std::move(member));
  }
  packed->kinds = static_cast<int>(kinds.size());
  Domain domain;
  domain.cls = LoopClass::kPacked;
  domain.packed = std::move(packed);
  if (space_packed(domain, machine).seeds.empty())
    return invalid("no number of threads suits all unconnected parts of the group");
  return domain;
}

}  // namespace wl
