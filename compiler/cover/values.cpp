#include "compiler/cover/values.h"

#include <algorithm>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/domain/axes.h"

namespace wl {
namespace {

constexpr size_t kSmallGroup = 16;  // lists of a group's ops reserve memory for this many; few groups have more

bool contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

CoverValues::CoverValues(const Graph& graph, const Machine& machine, CoverMemo* memo)
    : graph_(&graph),
      machine_(&machine),
      users_(graph.nodes.size()),
      anchor_(graph.nodes.size(), 0),
      is_graph_output_(graph.nodes.size(), 0),
      stored_as_(graph.nodes.size()),
      outputs_(graph.nodes.size()),
      sources_(graph.nodes.size()),
      readers_(graph.nodes.size()),
      visited_(graph.nodes.size(), 0),
      place_(graph.nodes.size(), 0),
      memo_(memo) {
  for (const Node& node : graph.nodes) {
    fingerprints_.push_back(fingerprint(node));
    as_read_.push_back(read_fingerprint(node));
  }
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    stored_as_[id] = id;
    anchor_[id] = is_computed(graph.nodes[id]);
    for (NodeId operand : graph.nodes[id].operands)
      if (users_[operand].empty() || users_[operand].back() != id) users_[operand].push_back(id);
  }
  for (const Output& output : graph.outputs) is_graph_output_[output.node] = 1;
}

absl::StatusOr<CoverValues> CoverValues::make(const Graph& graph, const Machine& machine, CoverMemo* memo, Work* work) {
  CoverValues values(graph, machine, memo);
  const auto go_on = [work] { return wl::go_on(work, kAnalysisSteps); };
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()) && go_on(); ++id)
    if (values.anchor_[id]) WL_RETURN_IF_ERROR(values.ensure_kernel(id));
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()) && go_on(); ++id)
    if (values.anchor_[id] && !is_view(graph.nodes[id])) values.choose_stored_form(id);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()) && go_on(); ++id)
    if (values.is_graph_output_[id]) WL_RETURN_IF_ERROR(values.place_output(id));
  WL_RETURN_IF_ERROR(ended(work));
  values.find_edges();
  return values;
}

const absl::StatusOr<Domain>& CoverValues::try_alone(NodeId anchor, std::vector<NodeId> stores) const {
  const Group group = group_storing({anchor}, std::move(stores));
  return CoverMemo::remembered((memo_ != nullptr ? *memo_ : own_).domains, structure(group),
                               [&] { return analyze(extract(*graph_, group), *machine_); });
}

bool CoverValues::first_visit(NodeId id) const {
  if (visited_[id] == walk_) return false;
  visited_[id] = walk_;
  return true;
}

Fingerprint CoverValues::structure(const Group& group) const {
  begin_walk();
  Fingerprint result;
  int count = 0;
  const auto place = [&](NodeId id) {
    visited_[id] = walk_;
    place_[id] = count++;
  };
  for (NodeId read : group.reads) {
    place(read);
    result.add(as_read_[read].a);
    result.add(as_read_[read].b);
  }
  for (NodeId op : group.ops) {
    if (visited_[op] == walk_) continue;  // an op that the group also reads was added above
    for (NodeId operand : graph_->nodes[op].operands) result.add(static_cast<uint64_t>(place_[operand]));
    result.add(fingerprints_[op].a);
    result.add(fingerprints_[op].b);
    place(op);
  }
  for (NodeId store : group.stores) result.add(static_cast<uint64_t>(place_[store]));
  return result;
}

// A single op is an illegal group only if it reads through a view that no kernel can absorb, or if it is a lookup
// (take_along) in a constant or iota. That view, constant or iota then becomes a kernel of its own.
absl::Status CoverValues::ensure_kernel(NodeId anchor) {
  absl::Status status = try_alone(anchor, {anchor}).status();
  if (status.ok()) return absl::OkStatus();
  bool changed = false;
  const Node& node = graph_->nodes[anchor];
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const NodeId operand = node.operands[k];
    const bool taken_from = node.op == Op::take_along && k == 0 && graph_->nodes[operand].op != Op::input;
    if (anchor_[operand] || (!is_view(graph_->nodes[operand]) && !taken_from)) continue;
    anchor_[operand] = 1;
    changed = true;
    WL_RETURN_IF_ERROR(ensure_kernel(operand));
  }
  if (changed) status = try_alone(anchor, {anchor}).status();
  if (!status.ok())
    return invalid("no kernel computes %", anchor, " ", name_of(graph_->nodes[anchor].op), " ",
                   shape_text(graph_->nodes[anchor].shape), ": ", status.message());
  return absl::OkStatus();
}

// Whether storing a view of a value (`viewed`) takes loops as simple as storing the value itself (`plain`), with every
// store contiguous along the vectors.
bool as_contiguous(const Domain& viewed, const Domain& plain) {
  if (viewed.atoms.size() > plain.atoms.size() || (viewed.second >= 0 && plain.second < 0)) return false;
  return viewed.vector < 0 || std::all_of(viewed.stores.begin(), viewed.stores.end(), [&](const Domain::Store& store) {
           return store.access.strides[viewed.vector] <= 1;
         });
}

bool CoverValues::readers_are_kernels(NodeId value) const {
  std::vector<NodeId> todo = users_[value];
  for (size_t i = 0; i < todo.size(); ++i) {
    const NodeId id = todo[i];
    if (anchor_[id]) {
      if (!try_alone(id, {id}).ok()) return false;
    } else {
      todo.insert(todo.end(), users_[id].begin(), users_[id].end());
    }
  }
  return true;
}

// If a reshape or transpose is the only use of a value, the value's kernel stores that view instead. This requires
// that the kernel's loops stay as simple as without the view, and that every kernel that reads the view is still legal
// alone.
void CoverValues::choose_stored_form(NodeId anchor) {
  NodeId last = anchor;
  while (!is_graph_output_[last] && users_[last].size() == 1) {
    const NodeId user = users_[last][0];
    const Op op = graph_->nodes[user].op;
    if ((op != Op::reshape && op != Op::transpose) || anchor_[user]) break;
    last = user;
  }
  if (last == anchor) return;
  const absl::StatusOr<Domain> plain = try_alone(anchor, {anchor}), viewed = try_alone(anchor, {last});
  if (!plain.ok() || !viewed.ok() || !as_contiguous(*viewed, *plain)) return;
  stored_as_[anchor] = last;
  if (!readers_are_kernels(last)) stored_as_[anchor] = anchor;
}

NodeId CoverValues::base_of(NodeId id) const {
  while (is_view(graph_->nodes[id]) && !anchor_[id] && graph_->nodes[id].operands.size() == 1)
    id = graph_->nodes[id].operands[0];
  return id;
}

absl::Status CoverValues::place_output(NodeId node) {
  if (is_leaf(graph_->nodes[node]) && !anchor_[node]) {
    Group copy;
    (graph_->nodes[node].op == Op::input ? copy.reads : copy.ops) = {node};
    copy.stores = {node};
    copies_.push_back(std::move(copy));
    return absl::OkStatus();
  }
  const NodeId base = base_of(node);
  if (base != node && anchor_[base]) {
    std::vector<NodeId> stores = outputs_[base];
    stores.push_back(stored_as_[base]);
    const absl::StatusOr<Domain> plain = try_alone(base, stores);
    stores.push_back(node);
    const absl::StatusOr<Domain> viewed = try_alone(base, stores);
    // Storing a view must not add loops to a contraction, whose tiles need whole axes. Other kernels may store any
    // view.
    if (viewed.ok() && plain.ok() &&
        (viewed->cls != LoopClass::kContract || viewed->atoms.size() <= plain->atoms.size())) {
      outputs_[base].push_back(node);
      return absl::OkStatus();
    }
  }
  outputs_[node].push_back(node);
  if (anchor_[node]) return absl::OkStatus();
  anchor_[node] = 1;
  return ensure_kernel(node);
}

void CoverValues::find_edges() {
  const NodeId count = static_cast<NodeId>(graph_->nodes.size());
  for (NodeId id = 0; id < count; ++id) {
    if (!anchor_[id]) continue;
    anchors_.push_back(id);
    std::set<NodeId> found;
    std::vector<NodeId> todo = graph_->nodes[id].operands;
    begin_walk();
    while (!todo.empty()) {
      const NodeId node = todo.back();
      todo.pop_back();
      if (!first_visit(node)) continue;
      if (anchor_[node])
        found.insert(node);
      else
        todo.insert(todo.end(), graph_->nodes[node].operands.begin(), graph_->nodes[node].operands.end());
    }
    sources_[id].assign(found.begin(), found.end());
    for (NodeId source : found) readers_[source].push_back(id);
  }
}

Group CoverValues::group_storing(const std::vector<NodeId>& anchors, std::vector<NodeId> stores) const {
  Group group;
  group.ops.reserve(kSmallGroup);
  group.reads.reserve(kSmallGroup);
  begin_walk();
  std::vector<NodeId> todo;
  todo.reserve(kSmallGroup + stores.size());
  todo.assign(stores.rbegin(), stores.rend());
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    if (!first_visit(id)) continue;
    const Node& node = graph_->nodes[id];
    const bool inside = contains(anchors, id);
    bool read = node.op == Op::input || (anchor_[id] && !inside);
    if (is_view(graph_->nodes[id]) && !anchor_[id]) {
      const NodeId base = base_of(id);
      read = anchor_[base] && !contains(anchors, base) && stored_as_[base] == id;
    }
    (read ? group.reads : group.ops).push_back(id);
    if (!read) todo.insert(todo.end(), node.operands.rbegin(), node.operands.rend());
  }
  std::sort(group.ops.begin(), group.ops.end());
  group.stores = std::move(stores);
  return group;
}

Group CoverValues::group(const std::vector<NodeId>& anchors) const {
  return group(anchors, anchors);
}

Group CoverValues::group(const std::vector<NodeId>& anchors, const std::vector<NodeId>& stored) const {
  std::vector<NodeId> stores;
  for (NodeId anchor : stored) {
    for (NodeId output : outputs_[anchor]) stores.push_back(output);
    for (NodeId reader : readers_[anchor])
      if (!contains(anchors, reader)) {
        stores.push_back(stored_as_[anchor]);
        break;
      }
  }
  std::sort(stores.begin(), stores.end());
  stores.erase(std::unique(stores.begin(), stores.end()), stores.end());
  return group_storing(anchors, std::move(stores));
}

NodeId CoverValues::anchor_behind(NodeId id) const {
  const NodeId base = base_of(id);
  return anchor_[base] ? base : -1;
}

size_t CoverValues::atoms_alone(NodeId anchor) const {
  const absl::StatusOr<Domain>& domain = try_alone(anchor, group({anchor}).stores);
  return domain.ok() ? domain->atoms.size() : 0;
}

int64_t CoverValues::bytes_moved(const Group& group) const {
  return wl::bytes_moved(*graph_, group);
}

Cover ordered(const Graph& graph, std::vector<Group> groups) {
  for (Group& group : groups) group = in_order(graph, std::move(group));
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.stores < b.stores; });
  std::vector<int> writer(graph.nodes.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g)
    for (NodeId store : groups[g].stores)
      if (graph.nodes[store].op != Op::input) writer[store] = static_cast<int>(g);
  std::vector<int> waits(groups.size(), 0);
  std::vector<std::vector<int>> next(groups.size());
  std::set<int> ready;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (NodeId read : groups[g].reads)
      if (writer[read] >= 0 && writer[read] != static_cast<int>(g)) {
        ++waits[g];
        next[writer[read]].push_back(static_cast<int>(g));
      }
    if (waits[g] == 0) ready.insert(static_cast<int>(g));
  }
  Cover cover;
  while (!ready.empty()) {
    const int g = *ready.begin();
    ready.erase(ready.begin());
    for (int after : next[g])
      if (--waits[after] == 0) ready.insert(after);
    cover.groups.push_back(std::move(groups[g]));
  }
  WL_CHECK(cover.groups.size() == groups.size(), "a cycle among ", groups.size(), " groups");
  return cover;
}

}  // namespace wl
