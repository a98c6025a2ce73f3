// Internals of domain/: the analysis that finds the loop domain of a group (domain.h). analysis.cpp walks over the ops
// and joins axes that must be the same loop; domain.cpp then makes atoms of the loops and accesses of the addresses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/domain/axes.h"
#include "compiler/domain/draft.h"
#include "compiler/domain/strided.h"

namespace wl {

class Analysis {
 public:
  Analysis(const Graph& group, const std::vector<std::vector<int64_t>>& pitches)
      : graph_(group), pitches_(pitches), axes_(group.nodes.size()), summed_(group.nodes.size()) {}

  absl::StatusOr<Domain> run();

 private:
  // An address (or the value of an iota) as a sum over factors (factors.h), because atoms are numbered only later.
  struct Pending {
    struct PendingTerm {
      FactorList factors;
      int64_t stride = 0;           // elements by which a step of the innermost factor changes the address
      std::vector<int64_t> guards;  // how much each guard's coordinate changes in a step of the innermost factor
    };
    NodeId input = -1;
    int64_t offset = 0;
    std::vector<Strided::Guard> guards;
    std::vector<PendingTerm> terms;
  };

  // An address that is read, and what reads it: an operand of a node, a store, or one piece of such an operand or
  // store.
  struct Read {
    NodeId node = -1;
    size_t operand = 0;
    int store = -1, piece = -1;
    Pending pending = {};
  };

  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  std::string what(NodeId id) const { return node_text(graph_, id); }
  void find_computed();
  absl::Status store(int index);

  // These functions, defined in analysis.cpp, find the reads of a group and the axes of the values that are computed
  // from them.
  absl::StatusOr<Axes> computed_path(NodeId source, const std::vector<NodeId>& views);
  // Makes new axes for a tensor that is read at `strided`. Sets `pending` to the address, written with the axes'
  // factors.
  Axes fresh_axes(NodeId input, const Strided& strided, Pending& pending);
  // Returns the axes of operand k of a node; nullopt for a splat constant, which has no axes of its own.
  absl::StatusOr<std::optional<Axes>> read(NodeId id, size_t k);
  // Does the work of read() for a value that this group does not compute. The value's addresses are added to reads_;
  // `as` says which operand or store reads them. `source` is set to the constant or iota to which the value's views
  // are applied, if there is one.
  absl::StatusOr<std::optional<Axes>> read_leaf(NodeId id, Read as, NodeId& source, std::vector<Piece>& pieces);
  absl::Status join(NodeId id, size_t k, const FactorList& mine, const FactorList& theirs);
  Axes own_axes(NodeId id);
  absl::Status compute(NodeId id);
  absl::Status compute_elementwise(NodeId id);
  absl::Status compute_reduce(NodeId id);
  absl::Status compute_contract(NodeId id);
  absl::Status compute_gather(NodeId id);

  // Defined in domain.cpp: joins axes into as few loops as possible, then makes atoms of the loops. Before that, each
  // read and each sum has factors of its own. link() joins the factors of two reads if they read the same elements of
  // one input, and those of two sums, unless this would give a value the same loop twice.
  void link();
  // Returns the terms of an address that have a stride, merged where possible, and their factors. The largest stride
  // comes first.
  std::pair<std::vector<Term>, FactorList> in_memory_order(const Pending& pending) const;
  bool same_loops(const FactorList& a, const FactorList& b);
  bool distinct(NodeId id) const;
  bool all_distinct() const;
  std::vector<AtomId> atoms_of(const FactorList& list);
  void fill_access(const Pending& pending, Access& access);
  Access& access_of(const Read& read);
  absl::Status resolve();

  const Graph& graph_;
  const std::vector<std::vector<int64_t>>& pitches_;
  Factors factors_;
  std::vector<Axes> axes_;          // the axes of the computed nodes, by NodeId
  std::vector<FactorList> summed_;  // the factors that each reduction or contraction sums over, by NodeId
  FactorList batch_, m_, n_;
  std::vector<Read> reads_;
  std::vector<Pending> writes_;  // for each entry of domain.stores: the address to which it writes
  std::vector<Axes> stored_axes_;
  std::map<int, AtomId> atom_of_;
  Draft draft_;
};

}  // namespace wl
