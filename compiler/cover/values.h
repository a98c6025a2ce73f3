// What covers are made of: which values of a graph can be outputs of kernels, and which group a set of ops forms. An
// *anchor* is a node that one kernel computes as its own work: every computed node, and the views that no kernel can
// absorb. All other views, constants and iotas are copied into every group that reads through them.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/plan/domain.h"
#include "compiler/plan/group_order.h"

namespace wl {

inline constexpr size_t kMostRemembered = 4096;  // domains of each kind, in a CoverMemo
inline constexpr uint64_t kAnalysisSteps = 50;   // that looking at one small group counts for (compiler/base/work.h)

// Answers about groups, by their structure, for one machine. Covers of graphs with parts in common reuse them.
struct CoverMemo {
  template <typename Found>
  using Of = std::unordered_map<Fingerprint, Found, FingerprintHash>;
  Of<absl::StatusOr<Domain>> domains;
  Of<absl::StatusOr<Domain>> stages;  // of parts of blocks, with the strides that their results have in memory
  Of<bool> mergers;                   // whether cover_greedy may make the group
};

class CoverValues {
 public:
  // Chooses the anchors, and the view of its value that each stores, so that every anchor alone is a legal group. An
  // error when an op has no kernel. `memo`, if given, must outlive the result.
  static absl::StatusOr<CoverValues> make(const Graph& graph, const Machine& machine, CoverMemo* memo = nullptr,
                                          Work* work = nullptr);

  const std::vector<NodeId>& anchors() const { return anchors_; }                       // ascending
  const std::vector<NodeId>& sources(NodeId anchor) const { return sources_[anchor]; }  // anchors it reads, distinct
  const std::vector<NodeId>& readers(NodeId anchor) const { return readers_[anchor]; }
  bool is_output(NodeId anchor) const { return !outputs_[anchor].empty(); }
  // The group of these anchors (ascending). It stores the values that other groups or the caller need.
  Group group(const std::vector<NodeId>& anchors) const;
  // The same group, which stores the values of `stored` only (both lists ascending).
  Group group(const std::vector<NodeId>& anchors, const std::vector<NodeId>& stored) const;
  // The anchor whose value an op or a read of a group is; -1: it is an input, or is copied into every group.
  NodeId anchor_behind(NodeId id) const;
  int64_t bytes_moved(const Group& group) const;
  // How many atoms the loops of an anchor's own kernel have.
  size_t atoms_alone(NodeId anchor) const;
  // Equal for groups of equal structure: all conclusions from the extract() of one hold for the other.
  Fingerprint structure(const Group& group) const;
  // Groups that only copy an input, constant or iota to an output.
  const std::vector<Group>& copies() const { return copies_; }
  const Graph& graph() const { return *graph_; }

 private:
  CoverValues(const Graph& graph, const Machine& machine, CoverMemo* memo);
  absl::Status ensure_kernel(NodeId anchor);
  // The result is valid until the next call.
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
  std::vector<NodeId> stored_as_;             // by anchor: itself, or the bijective view that its kernel stores instead
  std::vector<std::vector<NodeId>> outputs_;  // by anchor: graph outputs that its kernel stores
  std::vector<NodeId> anchors_;
  std::vector<std::vector<NodeId>> sources_, readers_;
  std::vector<Group> copies_;
  std::vector<Fingerprint> fingerprints_, as_read_;  // by node
  mutable std::vector<int> visited_, place_;         // by node: the last walk that reached it, and its position there
  mutable int walk_ = 0;
  CoverMemo* memo_;
  mutable CoverMemo own_;  // used when make() was given none
};

// The groups in topological order, ties by the smallest first op, each of them in_order().
Cover ordered(const Graph& graph, std::vector<Group> groups);

}  // namespace wl
