// For makers of covers: which values of a graph can be kernels' outputs, and the group that a set of ops makes. An
// *anchor* is a node that is some kernel's own work: every computed node, and the views that nobody can absorb. All
// other views, constants and iotas are copied into every group that reads through them.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/plan/domain.h"
#include "compiler/plan/group_order.h"

namespace wl {

// What was found out about groups, by their structure: covers of graphs with parts in common ask the same again and
// again. Of one machine.
struct CoverMemo {
  template <typename Found>
  using Of = std::unordered_map<Fingerprint, Found, FingerprintHash>;
  Of<absl::StatusOr<Domain>> domains;
  Of<bool> mergers;  // whether cover_greedy may make the group
};

class CoverValues {
 public:
  // Decides anchors and stored forms so that every anchor alone is a legal group; a Status when some op has no kernel.
  // `memo`, if any, outlives them.
  static absl::StatusOr<CoverValues> make(const Graph& graph, const Machine& machine, CoverMemo* memo = nullptr);

  const std::vector<NodeId>& anchors() const { return anchors_; }                       // ascending
  const std::vector<NodeId>& sources(NodeId anchor) const { return sources_[anchor]; }  // anchors it reads, distinct
  const std::vector<NodeId>& readers(NodeId anchor) const { return readers_[anchor]; }
  bool is_output(NodeId anchor) const { return !outputs_[anchor].empty(); }
  // The group of these anchors (ascending), storing what others or the caller need.
  Group group(const std::vector<NodeId>& anchors) const;
  // The same, storing only those of these anchors (both ascending).
  Group group(const std::vector<NodeId>& anchors, const std::vector<NodeId>& stored) const;
  // The anchor whose value an op or read of a group is, or -1: an input, or what is copied into every group.
  NodeId anchor_behind(NodeId id) const;
  int64_t bytes_moved(const Group& group) const;
  // Atoms of the loops of an anchor's own kernel.
  size_t atoms_alone(NodeId anchor) const;
  // Equal for groups of equal structure: what may be concluded from one extract() holds for the other.
  Fingerprint structure(const Group& group) const;
  // Groups that only copy an input, constant or iota to an output.
  const std::vector<Group>& copies() const { return copies_; }
  const Graph& graph() const { return *graph_; }

 private:
  CoverValues(const Graph& graph, const Machine& machine, CoverMemo* memo);
  absl::Status ensure_kernel(NodeId anchor);
  // Valid until the next call.
  const absl::StatusOr<Domain>& try_alone(NodeId anchor, std::vector<NodeId> stores) const;
  void choose_stored_form(NodeId anchor);
  bool readers_are_kernels(NodeId value) const;  // every anchor that reads it is a legal group alone
  absl::Status place_output(NodeId node);
  NodeId base_of(NodeId id) const;  // the anchor or leaf behind views
  void find_edges();
  Group group_storing(const std::vector<NodeId>& anchors, std::vector<NodeId> stores) const;
  void begin_walk() const { ++walk_; }
  bool first_visit(NodeId id) const;

  const Graph* graph_;
  const Machine* machine_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<char> anchor_, is_graph_output_;
  std::vector<NodeId> stored_as_;  // of anchors: itself, or the bijective view that its kernel stores instead
  std::vector<std::vector<NodeId>> outputs_;  // of anchors: graph outputs that its kernel stores
  std::vector<NodeId> anchors_;
  std::vector<std::vector<NodeId>> sources_, readers_;
  std::vector<Group> copies_;
  std::vector<Fingerprint> fingerprints_, as_read_;  // of nodes
  mutable std::vector<int> visited_, place_;         // the last walk that came by, and as how manieth
  mutable int walk_ = 0;
  CoverMemo* memo_;
  mutable CoverMemo own_;  // where there is no other
};

// Topological order, smallest first op first; each group in_order().
Cover ordered(const Graph& graph, std::vector<Group> groups);

}  // namespace wl
