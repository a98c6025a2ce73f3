// What covers are made of: which values of a graph can be outputs of kernels, and which group a set of ops forms. An
// *anchor* is a node that is some kernel's own work: a computed node, or a view that no kernel can absorb. All other
// views, constants and iotas are copied into every group that reads through them.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/domain/domain.h"
#include "compiler/domain/group_order.h"

namespace wl {

inline constexpr uint64_t kAnalysisSteps = 50;  // analysing a small group counts as this many steps of a Work

// A cache of what is known about groups on one machine; the key is a group's structure. Covers of graphs that have
// equal parts can share a cache.
struct CoverMemo {
  template <typename Found>
  using Of = std::unordered_map<Fingerprint, Found, FingerprintHash>;
  Of<absl::StatusOr<Domain>> domains;
  Of<absl::StatusOr<Domain>> stages;  // domains of the stages of a block; their keys include the strides of results
  Of<bool> mergers;                   // whether cover_greedy() may merge two groups to this one

  // Returns the answer for `key`; find() computes it if it is not known. The reference is valid until the next call for
  // the same `answers`.
  template <typename Found>
  static const Found& remembered(Of<Found>& answers, const Fingerprint& key, auto find) {
    constexpr size_t kMost = 4096;
    if (const auto known = answers.find(key); known != answers.end()) return known->second;
    if (answers.size() >= kMost) answers.clear();
    return answers.emplace(key, find()).first->second;
  }
};

class CoverValues {
 public:
  // Chooses the anchors, and the form in which each anchor's kernel stores its value (the value itself, or a reshape or
  // transpose of it), so that every anchor alone is a legal group. InvalidArgument: no kernel can compute some op. If
  // `work` ends first, its status is returned. `memo`, unless null, must outlive the result.
  static absl::StatusOr<CoverValues> make(const Graph& graph, const Machine& machine, CoverMemo* memo = nullptr,
                                          Work* work = nullptr);

  const std::vector<NodeId>& anchors() const { return anchors_; }  // all anchors, ascending
  // The anchors that `anchor` reads.
  const std::vector<NodeId>& sources(NodeId anchor) const { return sources_[anchor]; }
  const std::vector<NodeId>& readers(NodeId anchor) const { return readers_[anchor]; }
  bool is_output(NodeId anchor) const { return !outputs_[anchor].empty(); }
  // Returns the group of the given anchors (ascending). It stores all of their values that other groups or the caller
  // need.
  Group group(const std::vector<NodeId>& anchors) const;
  // Returns the group of the given anchors. Of the values that other groups or the caller need, it stores only those of
  // the anchors `stored`. Both lists must be ascending.
  Group group(const std::vector<NodeId>& anchors, const std::vector<NodeId>& stored) const;
  // Returns the anchor that the node `id` is, or is a view of. -1: the node is an input, or is copied into every group.
  NodeId anchor_behind(NodeId id) const;
  int64_t bytes_moved(const Group& group) const;
  // Returns the number of atoms (loops, domain/domain.h) of the kernel that computes the anchor alone.
  size_t atoms_alone(NodeId anchor) const;
  // Returns a fingerprint that is equal for groups of equal structure. What is known about the graph that extract()
  // makes of one such group holds for all of them.
  Fingerprint structure(const Group& group) const;
  // Returns the groups that only copy an input, constant or iota to an output.
  const std::vector<Group>& copies() const { return copies_; }
  const Graph& graph() const { return *graph_; }

 private:
  CoverValues(const Graph& graph, const Machine& machine, CoverMemo* memo);
  absl::Status ensure_kernel(NodeId anchor);
  // Analyses the group of one anchor, which stores the values of the nodes `stores`. The result is valid until the
  // next call.
  const absl::StatusOr<Domain>& try_alone(NodeId anchor, std::vector<NodeId> stores) const;
  void choose_stored_form(NodeId anchor);
  bool readers_are_kernels(NodeId value) const;  // whether each anchor that reads the value is legal alone
  absl::Status place_output(NodeId node);
  NodeId base_of(NodeId id) const;  // follows views of one operand to an anchor, a leaf or a view of several operands
  void find_edges();
  Group group_storing(const std::vector<NodeId>& anchors, std::vector<NodeId> stores) const;
  void begin_walk() const { ++walk_; }
  bool first_visit(NodeId id) const;

  const Graph* graph_;
  const Machine* machine_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<char> anchor_, is_graph_output_;
  std::vector<NodeId> stored_as_;             // of each anchor: itself, or the view that its kernel stores instead
  std::vector<std::vector<NodeId>> outputs_;  // of each anchor: the graph outputs that its kernel stores
  std::vector<NodeId> anchors_;
  std::vector<std::vector<NodeId>> sources_, readers_;
  std::vector<Group> copies_;
  std::vector<Fingerprint> fingerprints_, as_read_;  // fingerprints of each node: as an op and as an input of a group
  // Of each node: the number of the last walk that reached it, and its position in the order of that walk.
  mutable std::vector<int> visited_, place_;
  mutable int walk_ = 0;
  CoverMemo* memo_;
  mutable CoverMemo own_;  // the cache that is used if make() got no memo
};

// Returns a cover of the given groups in topological order. Where the order is free, groups are sorted by the values
// that they store. in_order() (domain/group_order.h) sorts the reads and stores of each group.
Cover ordered(const Graph& graph, std::vector<Group> groups);

}  // namespace wl
